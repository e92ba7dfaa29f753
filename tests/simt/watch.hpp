// Records what a kernel's memory does not show: atomic operations, sums in any order, and fences.
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
  std::unordered_set<const void*> sums;     // those of them with floating-point additions
  bool adds = false;                        // a floating-point sum was made, anywhere
  size_t sum_bytes = sizeof(float);         // the size of its type
  double largest = 0;                       // the largest magnitude of a sum or a summand
  std::function<void()> on_fence;           // null: not observed

  void begin(Device& on);
};
Watch& watch();

// Returns the first byte where a page differs from `wanted` by more than the order of its sums explains, or null.
const char* first_difference(const char* page, const char* wanted);

// An extra run of a launch whose blocks synchronise by atomic operations: what a block writes after its last __threadfence
// reaches the other blocks only when the launch ends, as it may on a GPU.
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
  std::vector<char> visible_;  // the log's pages as other blocks see them
  std::vector<Byte> late_;
};

}  // namespace simt
