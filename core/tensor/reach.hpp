// The bytes between the elements of a view of foreign strides.
#pragma once
#include <plugrad/sdk/abi.h>
#include <core/runtime/dispatch/op_table.hpp>
#include <plugrad/runtime/error.hpp>

#include <cstdint>
#include <string>

namespace plugrad {

// The bytes spanned by a view's elements below and above the start of the first element; each at most 2^62.
struct Reach {
  int64_t below = 0, above = 0;
};
// Throws Error (invalid) if no memory is so large. The view has elements. what: names the function in the message.
inline Reach reach_of(const plugrad_view& v, const char* what) {
  Reach reach;
  const auto size = static_cast<int64_t>(dtype_size(v.dtype));
  bool is_too_far = false;
  for (int i = 0; i < v.rank; ++i) {
    int64_t bytes = 0;
    is_too_far |= __builtin_mul_overflow(v.strides[i], (v.shape[i] - 1) * size, &bytes);
    int64_t& side = bytes < 0 ? reach.below : reach.above;
    is_too_far |= __builtin_add_overflow(side, bytes, &side);
  }
  is_too_far |= __builtin_add_overflow(reach.above, size, &reach.above);
  if (is_too_far || reach.above > INT64_MAX / 2 || reach.below < -(INT64_MAX / 2))
    throw Error(Code::invalid, std::string("[") + what + "] the strides reach further than any memory: they count elements");
  return reach;
}

}  // namespace plugrad
