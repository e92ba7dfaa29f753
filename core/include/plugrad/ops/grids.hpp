// Tensors made from coordinates: grids, pairs and products of lists.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>
#include <vector>

namespace plugrad {

enum class GridIndexing { ij, xy };
// Returns views of tensors of rank 0 or 1. Each view has an axis for each tensor: element (i, j, ..) of the first view is
// element i of the first tensor, and of the second view element j of the second tensor. GridIndexing::xy swaps the first two
// axes. Throws Error (invalid) without tensors.
PLUGRAD_API std::vector<Tensor> meshgrid(const std::vector<Tensor>& tensors, GridIndexing indexing = GridIndexing::ij);
// Returns all combinations of one element of each tensor of rank 1, with the last element changing fastest: (count, number
// of tensors). A single tensor is returned unchanged.
PLUGRAD_API Tensor cartesian_prod(const std::vector<Tensor>& tensors);
// Returns all choices of r elements of x (n), in x's order: (count, r). with_replacement: a choice may contain an element
// several times. Takes memory for n^r numbers.
PLUGRAD_API Tensor combinations(const Tensor& x, int64_t r = 2, bool with_replacement = false);
// Returns the rows and the columns, (2, count), of the elements of a matrix (row, col) on and below a diagonal: see tril.
PLUGRAD_API Tensor tril_indices(int64_t row, int64_t col, int64_t offset = 0, DType dtype = DType::i64,
                                Device device = default_device());
// Returns the rows and the columns, (2, count), of the elements of a matrix (row, col) on and above a diagonal: see triu.
PLUGRAD_API Tensor triu_indices(int64_t row, int64_t col, int64_t offset = 0, DType dtype = DType::i64,
                                Device device = default_device());
// Returns the powers x^(n - 1), ..., x, 1 of the elements of x (m) as the columns of a matrix (m, n). n is m by default.
// increasing reverses the columns. Powers of integers are i64.
PLUGRAD_API Tensor vander(const Tensor& x, std::optional<int64_t> n = std::nullopt, bool increasing = false);
// Returns a matrix with these matrices along its diagonal, and 0 elsewhere. Vectors and numbers count as rows.
PLUGRAD_API Tensor block_diag(const std::vector<Tensor>& tensors);

}  // namespace plugrad
