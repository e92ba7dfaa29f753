// Graphs as pictures.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <string>

namespace plugrad {

struct DrawOptions {
  std::string direction = "LR";  // of the arrows: LR, TB, RL, BT
  size_t limit = 2000;           // nodes; a larger graph is an error, for no picture of it can be read
};

// The graph that a tensor (or a Value's) was computed by, as text in the language DOT: a box for each tensor, with its
// label, its value and its gradient where they are numbers, else its shape; a circle for each op. Show it with Graphviz:
// `dot -Tsvg`. Throws Error (invalid) for an unknown direction and beyond the limit. Reads the values: waits for the device.
PLUGRAD_API std::string draw_dot(const Tensor& root, const DrawOptions& options = {});

}  // namespace plugrad
