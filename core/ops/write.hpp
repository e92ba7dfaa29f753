// Helpers shared by functions that write in place.
#pragma once
#include <core/autograd/node.hpp>
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// source as an operand of x: on x's device, in its dtype, broadcast to its shape, and copied if they share storage.
Tensor fitting(const Tensor& x, const Tensor& source);

// Whether a write into x is recorded: x is the result of an op, or the source, if any, requires a gradient.
inline bool is_recorded(const Tensor& x, const Tensor* source) {
  return recording() && is_inexact(dtype_of(x)) && (x.impl().node || (source && source->impl().node));
}
// Throws Error (invalid) if more than `handles` tensors share x's memory: a recorded write would change the remaining
// tensors unrecorded.
void require_unshared(const Tensor& x, const char* what, uint32_t handles = 1);

}  // namespace plugrad
