// Draws the graph of a tensor.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <string>

namespace plugrad {

struct DrawOptions {
  std::string direction = "LR";  // of the arrows: LR, TB, RL, BT
  size_t limit = 2000;           // nodes; a larger graph is an error: the picture would be unreadable
};

// Returns the graph of a tensor, or of a Value's tensor(), as text in the DOT language: an ellipse for each op, and for each
// tensor a box with its label, its gradient, and its value if known and of one element, else its shape. Render it with
// `dot -Tsvg` of Graphviz. Throws Error (invalid) for an unknown direction and beyond the limit. Waits for the device.
PLUGRAD_API std::string draw_dot(const Tensor& root, const DrawOptions& options = {});

}  // namespace plugrad
