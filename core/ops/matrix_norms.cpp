// Norms and condition numbers of matrices, and functions of matrices that are composed of ops.
#include <core/ops/argument.hpp>
#include <core/ops/factors.hpp>
#include <core/ops/infinity.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/contractions.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/linalg.hpp>
#include <plugrad/ops/masks.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/statistics.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/numbers.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace plugrad::linalg {
namespace {
// x with the two axes last.
Tensor with_last(const Tensor& x, const Shape& axes, const char* name) {
  require_defined(x, name);
  if (axes.size() != 2) refuse(name, "axes " + axes.text() + ": expected two");
  const Shape both = normal_axes(axes, x.rank(), name);
  return movedim(x, both, {-2, -1});
}

// A norm (..) of matrices with their axes in place and extent 1.
Tensor with_kept(const Tensor& norms, const Shape& axes, int rank, bool keepdim) {
  if (!keepdim) return norms;
  Shape both = normal_axes(axes, rank, "linalg.matrix_norm");
  std::ranges::sort(both);
  return unsqueeze(unsqueeze(norms, static_cast<int>(both[0])), static_cast<int>(both[1]));
}
}  // namespace

Tensor vector_norm(const Tensor& x, double ord, const Shape& axes, bool keepdim) {
  require_defined(x, "linalg.vector_norm");
  return norm(promoted_to_floating(x), ord, axes, keepdim);
}

Tensor matrix_norm(const Tensor& a, MatrixNorm ord, const Shape& axes, bool keepdim) {
  const char* const name = "linalg.matrix_norm";
  const Tensor x = with_last(a, axes, name);
  const Tensor norms = ord == MatrixNorm::frobenius ? vector_norm(x, 2, {-2, -1}) : sum(svdvals(matrices_of(name, x)), {-1});
  return with_kept(norms, axes, a.rank(), keepdim);
}

Tensor matrix_norm(const Tensor& a, double ord, const Shape& axes, bool keepdim) {
  const char* const name = "linalg.matrix_norm";
  const Tensor x = matrices_of(name, with_last(a, axes, name));
  const double size = std::abs(ord);
  if (size != 1 && size != 2 && size != kInfinity)
    refuse(name, "ord " + number_text(ord) + " does not name a norm of matrices: give 1, 2, infinity, or one negated");
  const Tensor values = size == 2 ? svdvals(x) : sum(abs(x), {size == 1 ? -2 : -1});
  return with_kept(ord > 0 ? max(values, {-1}) : min(values, {-1}), axes, a.rank(), keepdim);
}

// --- Condition numbers.

namespace {
Tensor is_singular(const Tensor& a) {
  const NoGrad constant;
  return eq(slogdet(a).sign, 0);
}

template <class Ord> Tensor by_inverse(const Tensor& matrix, Ord ord) {
  const Tensor a = square_matrices("linalg.cond", matrix), singular = is_singular(a);
  const Tensor regular = where(unsqueeze(unsqueeze(singular, -1), -1), identity_like(a), a);
  return where(singular, kInfinity, mul(matrix_norm(regular, ord), matrix_norm(inv(regular), ord)));
}
}  // namespace

Tensor cond(const Tensor& matrix, double ord) {
  if (std::abs(ord) != 2) return by_inverse(matrix, ord);
  const Tensor a = matrices_of("linalg.cond", matrix);
  if (!a.size(-1) || !a.size(-2)) return zeros(batch_of(a), a.dtype(), a.device());
  const Tensor s = svdvals(a), largest = select(s, -1, 0), smallest = select(s, -1, -1);
  return ord > 0 ? div(largest, smallest) : div(smallest, largest);
}
Tensor cond(const Tensor& matrix, MatrixNorm ord) { return by_inverse(matrix, ord); }

// --- Products and parts.

Tensor matrix_power(const Tensor& a, int64_t n) {
  require_defined(a, "linalg.matrix_power");
  if (n >= 0) return plugrad::matrix_power(a, n);
  if (n < -std::numeric_limits<int64_t>::max()) refuse("linalg.matrix_power", "n is too small: give one above -2^63");
  return plugrad::matrix_power(inv(a), -n);
}

Tensor vecdot(const Tensor& a, const Tensor& b, int axis) {
  require_defined(a, "linalg.vecdot");
  require_defined(b, "linalg.vecdot");
  return sum(mul(a, b), {axis});
}

Tensor diagonal(const Tensor& x, int64_t offset) {
  require_defined(x, "linalg.diagonal");
  if (x.rank() < 2) refuse("linalg.diagonal", "x has shape " + x.shape().text() + ": expected two axes or more");
  const int64_t m = x.size(-2), n = x.size(-1);
  const int64_t count = std::max<int64_t>(offset < 0 ? std::min(m + offset, n) : std::min(m, n - offset), 0);
  const int64_t start = offset < 0 ? -offset * n : offset;
  Shape shape = batch_of(x);
  shape.push_back(m * n);
  const Tensor flat = reshape(x, shape);
  if (!count) return slice(flat, -1, 0, 0);
  return slice(flat, -1, start, start + (count - 1) * (n + 1) + 1, n + 1);
}

}  // namespace plugrad::linalg
