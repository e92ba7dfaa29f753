// Some rows of a tensor in a file.
#pragma once
#include <plugrad/tensor/shape.hpp>

#include <string>

namespace plugrad::io {

// Returns the shape of the rows first .. last - 1 along the first axis. Messages name the path and the tensor.
// Throws Error (invalid) for rank 0, and Error (index_error) unless 0 <= first <= last <= the extent.
Shape shape_of_rows(const std::string& path, const std::string& name, const Shape& shape, int64_t first, int64_t last);

}  // namespace plugrad::io
