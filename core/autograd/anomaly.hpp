// The checks of DetectAnomaly for recorded ops and computed gradients.
#pragma once
#include <core/autograd/node.hpp>

namespace plugrad {

// Notes where the op was recorded. Throws Error (invalid) if the op made the first NaN and the thread checks results.
void detect_forward(Node& node, const Tensor& out, std::span<const Tensor* const> operands);

// Throw Error (invalid) for NaN: in the sum of the gradients at a node, or in the gradient of operand i of a recorded node.
// Both may be undefined.
void require_no_nan(const Node& node, const Tensor& sum);
void require_no_nan(const Node& node, size_t i, const Tensor& gradient);

}  // namespace plugrad
