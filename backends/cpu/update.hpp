// Steps of optimisers: elementwise passes over a parameter and its state, with numbers common to all elements.
#pragma once
#include <backends/cpu/elementwise.hpp>

namespace plugrad::cpu {

inline constexpr size_t kUpdateNumbers = 72;  // bytes, at most; of types aligned to 8 bytes

// An update's operands are the in-out operands, then the gradient. The op's further inputs are numbers.
struct Update {
  // Writes the rows' arguments besides operands, for a parameter of `count` elements. The numbers have the op's dtype.
  void (*prepare)(void* arguments, const void* attributes, const char* const* numbers, int64_t count);
  const Elementwise& (*kind)(const void* attributes);
};

}  // namespace plugrad::cpu
