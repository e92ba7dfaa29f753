// What a kernel did that its memory does not tell: atomic operations, sums whose order is free, and fences.
#pragma once
#include <tests/simt/device.hpp>

#include <cstdint>
#include <functional>
#include <unordered_set>
#include <vector>

namespace simt {

struct Watch {
  Device* device = nullptr;
  std::unordered_set<const void*> atomics;  // words of device memory
  std::unordered_set<const void*> sums;     // the words among them that floating-point numbers were added to
  bool adds = false;                        // such a sum was made, wherever
  size_t sum_bytes = sizeof(float);         // of its type
  double largest = 0;                       // magnitude among the sums and what was added to them
  std::function<void()> on_fence;           // null: nobody asks

  void begin(Device& on);
};
Watch& watch();

// Whether a page that runs of one kernel have left differs by more than the order of its sums: the first byte, or null.
const char* first_difference(const char* page, const char* wanted);

// A further run of a launch whose blocks meet by atomic operations: what a block writes after its last __threadfence reaches
// the others when the launch is over. On a GPU it may.
class LateWrites {
 public:
  explicit LateWrites(WriteLog& log);
  void block_ends();
  void launch_ends();

 private:
  struct Byte {
    size_t page, offset;
    char value;
  };
  void show_all();

  WriteLog& log_;
  std::vector<char> visible_;  // the pages of the log, as other blocks see them
  std::vector<Byte> late_;
};

}  // namespace simt
