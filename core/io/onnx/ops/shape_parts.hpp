// Shapes that several mappings need.
#pragma once
#include <plugrad/tensor/shape.hpp>

#include <vector>

namespace plugrad::io::onnx {

inline Shape ones_shape(int rank) { return Shape(std::vector<int64_t>(static_cast<size_t>(rank), 1)); }
// Extents of 1 but for one axis.
inline Shape shape_along(int rank, int axis, int64_t extent) {
  Shape shape = ones_shape(rank);
  shape[static_cast<size_t>(axis)] = extent;
  return shape;
}
// Axes 2, 3, ..
inline Shape spatial_axes(int rank) {
  std::vector<int64_t> axes;
  for (int d = 2; d < rank; ++d) axes.push_back(d);
  return Shape(axes);
}
// The axes before `first` as rows, the others as columns.
inline Shape matrix_shape(const Shape& shape, int64_t first) {
  int64_t rows = 1, columns = 1;
  for (int d = 0; d < shape.rank(); ++d) (d < first ? rows : columns) *= shape[static_cast<size_t>(d)];
  return {rows, columns};
}

}  // namespace plugrad::io::onnx
