// Records events that a kernel's memory does not show: atomic operations, additions in undefined order, and fences.
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
  std::unordered_set<const void*> sums;     // the atomics that were floating-point additions
  bool adds = false;                        // some word had a floating-point addition
  size_t sum_bytes = sizeof(float);         // the size of the type that was added
  double largest = 0;                       // the largest magnitude of a sum or a summand
  std::function<void()> on_fence;           // null: not observed

  void begin(Device& on);
};
Watch& watch();

// Returns the first byte where a page differs from `wanted` by more than the order of its sums explains, or null.
const char* first_difference(const char* page, const char* wanted);

// An extra run of a launch whose blocks synchronise by atomic operations: the writes of a block after its last __threadfence
// reach the other blocks only when the launch ends, as may happen on a GPU.
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
