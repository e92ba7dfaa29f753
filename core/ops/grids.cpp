#include <plugrad/ops/grids.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/extent.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/integers.hpp>
#include <plugrad/ops/joining.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/masks.hpp>
#include <plugrad/ops/scans.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <string>

namespace plugrad {

std::vector<Tensor> meshgrid(const std::vector<Tensor>& tensors, GridIndexing indexing) {
  if (tensors.empty()) refuse("meshgrid", "no tensors were given: give one or more");
  const bool swaps = indexing == GridIndexing::xy && tensors.size() > 1;
  Shape shape;
  for (const Tensor& each : tensors) {
    require_defined(each, "meshgrid");
    if (each.rank() > 1) refuse("meshgrid", "a tensor has shape " + each.shape().text() + ": expected rank 0 or 1");
    shape.push_back(each.count());
  }
  if (swaps) std::swap(shape[0], shape[1]);
  std::vector<Tensor> grids;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Shape own = shape;
    std::ranges::fill(own, 1);
    own[swaps && i < 2 ? 1 - i : i] = tensors[i].count();
    grids.push_back(expand(reshape(tensors[i], own), shape));
  }
  return grids;
}

Tensor cartesian_prod(const std::vector<Tensor>& tensors) {
  for (const Tensor& each : tensors) {
    require_defined(each, "cartesian_prod");
    if (each.rank() != 1) refuse("cartesian_prod", "a tensor has shape " + each.shape().text() + ": expected rank 1");
  }
  if (tensors.size() == 1) return tensors.front();
  std::vector<Tensor> columns;
  for (const Tensor& each : meshgrid(tensors)) columns.push_back(reshape(each, {each.count()}));
  return stack(columns, 1);
}

// --- Positions in matrices.

namespace {
// The row-major positions of the true elements of a mask (n). The caller knows their number.
Tensor true_positions(const Tensor& mask, int64_t count) {
  const Tensor number = sub(cumsum(mask, 0), 1), target = where(mask, number, count);
  const Tensor none = zeros({count + 1}, DType::i64, mask.device());
  return slice(scatter_add(none, 0, target, arange(0, mask.count(), 1, DType::i64, mask.device())), 0, 0, count);
}

// The elements on and below the diagonal. offset: from -rows to columns.
int64_t count_of_triangle(int64_t rows, int64_t columns, int64_t offset) {
  const int64_t first = std::clamp<int64_t>(-offset, 0, rows);                  // before it, rows are empty
  const int64_t full = std::clamp<int64_t>(columns - offset - 1, first, rows);  // from it on, rows are full
  const Extent ends = Extent(first) + full + 2 * Extent(offset) + 1;
  return (full - first) * ends / 2 + Extent(rows - full) * columns;
}

// lower: on and below the diagonal, else above it.
Tensor triangle(const char* name, int64_t rows, int64_t columns, int64_t offset, bool lower, DType dtype, Device device) {
  if (rows < 0 || columns < 0)
    refuse(name, "the extents are " + std::to_string(rows) + " and " + std::to_string(columns) + ": give none below 0");
  offset = std::clamp(offset, -rows, columns);
  const int64_t total = Extent(rows) * columns, below = count_of_triangle(rows, columns, offset);
  const int64_t count = lower ? below : total - below;
  const Tensor all = arange(0, total, 1, DType::i64, device);
  if (!count) return zeros({2, 0}, dtype, device);
  const Tensor diagonal = sub(remainder(all, columns), floor_divide(all, columns));
  const Tensor at = true_positions(lower ? le(diagonal, offset) : gt(diagonal, offset), count);
  return cast(stack({floor_divide(at, columns), remainder(at, columns)}), dtype);
}
}  // namespace

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, DType dtype, Device device) {
  return triangle("tril_indices", row, col, offset, true, dtype, device);
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, DType dtype, Device device) {
  return triangle("triu_indices", row, col, std::max(offset, -INT64_MAX) - 1, false, dtype, device);
}

// --- Choices.

namespace {
// n choose r, for small r.
int64_t count_of_choices(int64_t n, int64_t r) {
  if (r > n) return 0;
  Extent count = 1;
  for (int64_t i = 1; i <= r; ++i) count = count * (n - r + i) / i;
  return count;
}

// The r digits of numbers in base n, beginning with the first.
std::vector<Tensor> digits_of(Tensor numbers, int64_t n, int64_t r) {
  std::vector<Tensor> digits(static_cast<size_t>(r));
  for (size_t i = digits.size(); i-- > 0; numbers = floor_divide(numbers, n)) digits[i] = remainder(numbers, n);
  return digits;
}
}  // namespace

Tensor combinations(const Tensor& x, int64_t r, bool with_replacement) {
  require_defined(x, "combinations");
  if (x.rank() != 1) refuse("combinations", "x has shape " + x.shape().text() + ": expected rank 1");
  if (r < 0) refuse("combinations", "r is " + std::to_string(r) + ": expected 0 or more");
  const int64_t n = x.count();
  if (r == 0) return slice(x, 0, 0, 0);
  if (!n || (!with_replacement && r > n)) return reshape(slice(x, 0, 0, 0), {0, r});
  if (n == 1) return expand(x, {1, r});
  Extent power = 1;
  for (int64_t i = 0; i < r; ++i) power *= n;
  const int64_t all = power;
  const int64_t count = count_of_choices(with_replacement ? n + r - 1 : n, r);
  const std::vector<Tensor> digits = digits_of(arange(0, all, 1, DType::i64, x.device()), n, r);
  Tensor ascends = ones({all}, DType::boolean, x.device());
  for (size_t i = 1; i < digits.size(); ++i)
    ascends = logical_and(ascends, with_replacement ? le(digits[i - 1], digits[i]) : lt(digits[i - 1], digits[i]));
  std::vector<Tensor> columns;
  for (const Tensor& digit : digits_of(true_positions(ascends, count), n, r)) columns.push_back(gather(x, 0, digit));
  return stack(columns, 1);
}

// --- Matrices.

Tensor vander(const Tensor& x, std::optional<int64_t> n, bool increasing) {
  require_defined(x, "vander");
  if (x.rank() != 1) refuse("vander", "x has shape " + x.shape().text() + ": expected rank 1");
  const int64_t columns = n.value_or(x.count());
  if (columns < 0) refuse("vander", std::to_string(columns) + " columns: expected 0 or more");
  const Tensor numbers = is_inexact(x.dtype()) ? x : cast(x, DType::i64);
  const Tensor one = ones({x.count(), columns ? 1 : 0}, numbers.dtype(), x.device());
  if (columns < 2) return one;
  const Tensor powers = cumprod(expand(unsqueeze(numbers, 1), {x.count(), columns - 1}), 1);
  const Tensor out = cat({one, powers}, 1);
  return increasing ? out : flip(out, {1});
}

Tensor block_diag(const std::vector<Tensor>& tensors) {
  if (tensors.empty()) refuse("block_diag", "no tensors were given: give one or more");
  std::vector<Tensor> blocks;
  int64_t width = 0, left = 0;
  for (const Tensor& each : tensors) {
    require_defined(each, "block_diag");
    if (each.rank() > 2) refuse("block_diag", "a tensor has shape " + each.shape().text() + ": expected rank 2 at most");
    blocks.push_back(atleast_2d(each));
    width += blocks.back().size(1);
  }
  for (Tensor& each : blocks) {
    const int64_t own = each.size(1);
    each = pad(each, {left, width - left - own});
    left += own;
  }
  return cat(blocks, 0);
}

}  // namespace plugrad
