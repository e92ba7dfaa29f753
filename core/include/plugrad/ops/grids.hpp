// Tensors made from coordinates: grids, pairs and products of lists.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>
#include <vector>

namespace plugrad {

enum class GridIndexing { ij, xy };
// Views of tensors of rank 0 or 1; each view has an axis for each tensor: element (i, j, ..) of the first is its own
// element i, of the second its own element j. GridIndexing::xy swaps the first two axes. Throws Error (invalid) without
// tensors.
PLUGRAD_API std::vector<Tensor> meshgrid(const std::vector<Tensor>& tensors, GridIndexing indexing = GridIndexing::ij);
// All combinations of an element of each tensor of rank 1, with the last element changing fastest: (count, number of
// tensors). A single tensor is returned as it is.
PLUGRAD_API Tensor cartesian_prod(const std::vector<Tensor>& tensors);
// All choices of r elements of x (n), in x's order: (count, r). with_replacement: an element may be chosen several times.
// Takes memory for n^r numbers.
PLUGRAD_API Tensor combinations(const Tensor& x, int64_t r = 2, bool with_replacement = false);
// The rows and the columns, (2, count), of the elements of a matrix (row, col) on and below a diagonal: see tril.
PLUGRAD_API Tensor tril_indices(int64_t row, int64_t col, int64_t offset = 0, DType dtype = DType::i64,
                                Device device = default_device());
// The same for the elements on and above the diagonal.
PLUGRAD_API Tensor triu_indices(int64_t row, int64_t col, int64_t offset = 0, DType dtype = DType::i64,
                                Device device = default_device());
// The powers x^(n - 1), ..., x, 1 of the elements of x (m) as the columns of a matrix (m, n); n is m if it is left out.
// increasing reverses the columns. Powers of integers are i64.
PLUGRAD_API Tensor vander(const Tensor& x, std::optional<int64_t> n = std::nullopt, bool increasing = false);
// A matrix with these matrices along its diagonal, and 0 elsewhere. Vectors and numbers count as rows.
PLUGRAD_API Tensor block_diag(const std::vector<Tensor>& tensors);

}  // namespace plugrad
