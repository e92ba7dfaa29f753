#pragma once
#include <backends/cuda/submission.hpp>

namespace plugrad::cuda {

// Submits a copy between operands of equal floating dtype and shape, in any layout.
void copy_floating(const plugrad_view& out, const plugrad_view& in, const Submission& submission);

}  // namespace plugrad::cuda
