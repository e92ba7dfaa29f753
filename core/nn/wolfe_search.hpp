// The line search of L-BFGS.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <functional>

namespace plugrad::nn {

// A point at a length along the direction. slope: of the loss along the direction.
struct LinePoint {
  double length, loss, slope;
  Tensor gradient;
};

// Returns a point that satisfies the strong Wolfe conditions: its loss lies below start's by at least 1e-4 times slope times
// length, and the size of its slope is at most 0.9 times the size of start's. Returns the best point so far after `most`
// evaluations besides the first, or once the points of the bracket differ by less than `resolution` in length.
// first: the length to begin with. The sequence of lengths is PyTorch's.
LinePoint wolfe_search(const std::function<LinePoint(double length)>& evaluate, const LinePoint& start, double first,
                       int most, double resolution);

}  // namespace plugrad::nn
