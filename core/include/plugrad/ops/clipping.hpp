// Functions that limit gradients in place, without recording. They skip tensors without a gradient.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <vector>

namespace plugrad {

// Multiplies the gradients by max_norm / (total + 1e-6) if this factor is below 1. total is the norm of all gradients as one
// vector; see norm for norm_type. Returns total, of rank 0, in the dtype of the first gradient, or f32 without any gradient.
PLUGRAD_API Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2);
// Limits each element of the gradients to [-clip_value, clip_value]. Throws Error (invalid) for a negative or NaN
// clip_value.
PLUGRAD_API void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

}  // namespace plugrad
