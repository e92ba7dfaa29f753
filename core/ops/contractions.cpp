#include <plugrad/ops/contractions.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/autocast_rules.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/complex.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/masks.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <limits>

namespace plugrad {
namespace {
std::string both_shapes(const Tensor& a, const Tensor& b) { return a.shape().text() + " and " + b.shape().text(); }

void require_rank(const char* name, const Tensor& x, int rank) {
  require_defined(x, name);
  if (x.rank() != rank) refuse(name, "an operand has shape " + x.shape().text() + ": expected rank " + std::to_string(rank));
}

// The product of two operands of these ranks whose inner extents agree.
Tensor product_of_ranks(const char* name, const Tensor& a, int rank_a, const Tensor& b, int rank_b) {
  require_rank(name, a, rank_a);
  require_rank(name, b, rank_b);
  const bool batches = rank_a < 3 || a.size(0) == b.size(0);
  if (!batches || a.size(-1) != b.size(rank_b == 1 ? 0 : -2))
    refuse(name, "shapes " + both_shapes(a, b) + " do not fit: the inner extents, and those of batches, must be equal");
  return matmul(a, b);
}
}  // namespace

// --- Sums over axes of two operands.

namespace {
// x as a matrix: the axes `summed` as a single axis, behind or before the remaining axes as a single axis.
Tensor as_matrix(const Tensor& x, const Shape& summed, const Shape& others, bool behind) {
  Shape order;
  int64_t inner = 1, outer = 1;
  for (const int64_t axis : summed) inner *= x.size(static_cast<int>(axis));
  for (const int64_t axis : others) outer *= x.size(static_cast<int>(axis));
  for (const Shape& part : {behind ? others : summed, behind ? summed : others})
    for (const int64_t axis : part) order.push_back(axis);
  return reshape(permute(x, order), behind ? Shape{outer, inner} : Shape{inner, outer});
}

Shape other_axes(const Shape& axes, int rank) {
  Shape others;
  for (int i = 0; i < rank; ++i)
    if (std::ranges::find(axes, i) == axes.end()) others.push_back(i);
  return others;
}
// normal_axes takes an empty list as all axes.
Shape given_axes(const Shape& axes, const Tensor& x) {
  require_defined(x, "tensordot");
  return axes.empty() ? axes : normal_axes(axes, x.rank(), "tensordot");
}
}  // namespace

namespace {
// x summed over its axes whose partner in `other` has extent 1.
Tensor summed_beside_ones(const Tensor& x, const Shape& axes, const Tensor& other, const Shape& axes_other) {
  Shape over;
  for (size_t i = 0; i < std::min(axes.size(), axes_other.size()); ++i)
    if (other.size(static_cast<int>(axes_other[i])) == 1 && x.size(static_cast<int>(axes[i])) != 1) over.push_back(axes[i]);
  return over.empty() ? x : cast(sum(x, over, true), x.dtype());
}
}  // namespace

Tensor tensordot(const Tensor& left_factor, const Tensor& right_factor, const Shape& axes_a, const Shape& axes_b) {
  const Shape of_a = given_axes(axes_a, left_factor), of_b = given_axes(axes_b, right_factor);
  const Tensor a = summed_beside_ones(left_factor, of_a, right_factor, of_b),
               b = summed_beside_ones(right_factor, of_b, left_factor, of_a);
  bool fits = of_a.size() == of_b.size();
  for (size_t i = 0; fits && i < of_a.size(); ++i)
    fits = a.size(static_cast<int>(of_a[i])) == b.size(static_cast<int>(of_b[i]));
  if (!fits)
    refuse("tensordot", "axes " + axes_a.text() + " and " + axes_b.text() + " of shapes " + both_shapes(a, b) +
                            " do not fit: expected as many, with equal extents");
  const Shape left = other_axes(of_a, a.rank()), right = other_axes(of_b, b.rank());
  Shape shape;
  for (const int64_t axis : left) shape.push_back(a.size(static_cast<int>(axis)));
  for (const int64_t axis : right) shape.push_back(b.size(static_cast<int>(axis)));
  return reshape(matmul(as_matrix(a, of_a, left, true), as_matrix(b, of_b, right, false)), shape);
}

Tensor tensordot(const Tensor& a, const Tensor& b, int64_t axes) {
  require_defined(a, "tensordot");
  require_defined(b, "tensordot");
  if (axes < 0 || axes > a.rank() || axes > b.rank())
    refuse("tensordot", std::to_string(axes) + " axes of shapes " + both_shapes(a, b) + ": expected 0 to the smaller rank");
  Shape of_a, of_b;
  for (int64_t i = 0; i < axes; ++i) {
    of_a.push_back(a.rank() - axes + i);
    of_b.push_back(i);
  }
  return tensordot(a, b, of_a, of_b);
}

Tensor inner(const Tensor& a, const Tensor& b) {
  require_defined(a, "inner");
  require_defined(b, "inner");
  if (!a.rank() || !b.rank()) return mul(a, b);
  if (a.size(-1) != b.size(-1)) refuse("inner", "shapes " + both_shapes(a, b) + ": the last extents must be equal");
  return tensordot(a, b, {-1}, {-1});
}

Tensor outer(const Tensor& a, const Tensor& b) {
  require_rank("outer", a, 1);
  require_rank("outer", b, 1);
  return mul(unsqueeze(a, 1), b);
}

// --- Vectors and matrices.

Tensor dot(const Tensor& a, const Tensor& b) { return product_of_ranks("dot", a, 1, b, 1); }
Tensor vdot(const Tensor& a, const Tensor& b) { return product_of_ranks("vdot", conj(a), 1, b, 1); }
Tensor mv(const Tensor& x, const Tensor& vec) { return product_of_ranks("mv", x, 2, vec, 1); }
Tensor mm(const Tensor& x, const Tensor& mat2) { return product_of_ranks("mm", x, 2, mat2, 2); }
Tensor bmm(const Tensor& x, const Tensor& mat2) { return product_of_ranks("bmm", x, 3, mat2, 3); }

namespace {
Tensor scaled_by(const Tensor& x, Number factor) { return factor.real() == 1 ? x : mul(x, factor); }

bool broadcasts_to(const Shape& from, const Shape& to) {
  bool fits = from.size() <= to.size();
  for (size_t i = 0; fits && i < from.size(); ++i) fits = from[i] == 1 || from[i] == to[to.size() - from.size() + i];
  return fits;
}

// beta x + alpha product, in product's shape.
Tensor added(const char* name, const Tensor& x, const Tensor& product, Number beta, Number alpha) {
  require_defined(x, name);
  if (!broadcasts_to(x.shape(), product.shape()))
    refuse(name, "x has shape " + x.shape().text() + ", which does not broadcast to " + product.shape().text() +
                     ", the product's: give another shape");
  const Tensor term = scaled_by(product, alpha);
  return beta.real() == 0 ? term : add(scaled_by(x, beta), term);
}
}  // namespace

Tensor addmm(const Tensor& x, const Tensor& mat1, const Tensor& mat2, Number beta, Number alpha) {
  if (autocasting()) [[unlikely]]
    return in_low_precision(addmm, x, mat1, mat2, beta, alpha);
  if (are_halves(x, mat1, mat2)) return rounded_once(x, addmm, x, mat1, mat2, beta, alpha);
  return added("addmm", x, product_of_ranks("addmm", mat1, 2, mat2, 2), beta, alpha);
}
Tensor addmv(const Tensor& x, const Tensor& mat, const Tensor& vec, Number beta, Number alpha) {
  if (autocasting()) [[unlikely]]
    return in_low_precision(addmv, x, mat, vec, beta, alpha);
  if (are_halves(x, mat, vec)) return rounded_once(x, addmv, x, mat, vec, beta, alpha);
  return added("addmv", x, product_of_ranks("addmv", mat, 2, vec, 1), beta, alpha);
}
Tensor baddbmm(const Tensor& x, const Tensor& batch1, const Tensor& batch2, Number beta, Number alpha) {
  if (autocasting()) [[unlikely]]
    return in_low_precision(baddbmm, x, batch1, batch2, beta, alpha);
  if (are_halves(x, batch1, batch2)) return rounded_once(x, baddbmm, x, batch1, batch2, beta, alpha);
  return added("baddbmm", x, product_of_ranks("baddbmm", batch1, 3, batch2, 3), beta, alpha);
}
Tensor addbmm(const Tensor& x, const Tensor& batch1, const Tensor& batch2, Number beta, Number alpha) {
  if (autocasting()) [[unlikely]]
    return in_low_precision(addbmm, x, batch1, batch2, beta, alpha);
  if (are_halves(x, batch1, batch2)) return rounded_once(x, addbmm, x, batch1, batch2, beta, alpha);
  const Tensor products = product_of_ranks("addbmm", batch1, 3, batch2, 3);
  return added("addbmm", x, cast(sum(products, {0}), products.dtype()), beta, alpha);
}
Tensor addr(const Tensor& x, const Tensor& vec1, const Tensor& vec2, Number beta, Number alpha) {
  if (autocasting()) [[unlikely]]
    return in_low_precision(addr, x, vec1, vec2, beta, alpha);
  if (are_halves(x, vec1, vec2)) return rounded_once(x, addr, x, vec1, vec2, beta, alpha);
  return added("addr", x, outer(vec1, vec2), beta, alpha);
}

namespace {
// x + value f(tensor1, tensor2), rounded once.
Tensor with_term(const char* name, const Tensor& x, const Tensor& tensor1, const Tensor& tensor2, Number value,
                 Tensor (*f)(const Tensor&, const Tensor&)) {
  for (const Tensor* each : {&x, &tensor1, &tensor2}) require_defined(*each, name);
  const DType dtype = promote_types(x.dtype(), promote_types(tensor1.dtype(), tensor2.dtype()));
  const Tensor out = add(at_least_f32(x), scaled_by(f(at_least_f32(tensor1), at_least_f32(tensor2)), value));
  return is_inexact(dtype) ? cast(out, dtype) : out;
}
}  // namespace

Tensor addcmul(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2, Number value) {
  return with_term("addcmul", x, tensor1, tensor2, value, mul);
}
Tensor addcdiv(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2, Number value) {
  return with_term("addcdiv", x, tensor1, tensor2, value, div);
}

Tensor trace(const Tensor& x) {
  require_rank("trace", x, 2);
  const int64_t n = std::min(x.size(0), x.size(1));
  return sum(einsum("ii->i", {slice(slice(x, 0, 0, n), 1, 0, n)}));
}

Tensor matrix_power(const Tensor& x, int64_t n) {
  require_defined(x, "matrix_power");
  if (are_halves(x)) return rounded_once(x, matrix_power, x, n);
  if (x.rank() < 2 || x.size(-1) != x.size(-2))
    refuse("matrix_power", "x has shape " + x.shape().text() + ": expected square matrices (.., n, n)");
  if (n < 0)
    throw Error(Code::unsupported,
                "[matrix_power] the power " + std::to_string(n) + " needs the inverse: invert the matrix first");
  if (n == 0)  // the choice records a gradient of 0
    return where(ones(x.shape(), DType::boolean, x.device()), eye(x.size(-1), -1, x.dtype(), x.device()), x);
  Tensor power, square = x;
  for (; n > 0; n >>= 1) {
    if (n & 1) power = power.defined() ? matmul(power, square) : square;
    if (n > 1) square = matmul(square, square);
  }
  return power;
}

// --- Products that repeat or rotate operands.

Tensor kron(const Tensor& a, const Tensor& b) {
  require_defined(a, "kron");
  require_defined(b, "kron");
  Tensor each = a, whole = b;
  while (each.rank() < whole.rank()) each = unsqueeze(each, 0);
  while (whole.rank() < each.rank()) whole = unsqueeze(whole, 0);
  const Shape repeats = each.shape();
  for (int i = 0; i < whole.rank(); ++i) each = repeat_interleave(each, whole.size(i), i);
  return mul(each, repeat(whole, repeats));
}

Tensor cross(const Tensor& a, const Tensor& b, std::optional<int64_t> axis) {
  require_defined(a, "cross");
  require_defined(b, "cross");
  if (are_halves(a, b)) return rounded_once(a, cross, a, b, axis);
  const Shape extents = a.shape(), others = b.shape();
  int64_t at = axis.value_or(std::ranges::find(extents, 3) - extents.begin());
  if (axis) at = normal_axis(*axis, a.rank(), "cross");
  if (a.rank() != b.rank() || at >= a.rank() || extents[static_cast<size_t>(at)] != 3 ||
      others[static_cast<size_t>(at)] != 3)
    refuse("cross", "shapes " + both_shapes(a, b) + (axis ? " along axis " + std::to_string(at) : std::string()) +
                        ": expected equal ranks, and extent 3 along one axis");
  return sub(mul(roll(a, {-1}, {at}), roll(b, {-2}, {at})), mul(roll(a, {-2}, {at}), roll(b, {-1}, {at})));
}

// --- Several operands.

namespace {
// Where to cut a chain of matrices, of extents e[0] x e[1], e[1] x e[2] ..., for the fewest multiplications: cut[i][j] ends
// the left part of matrices i..j.
std::vector<std::vector<size_t>> best_cuts(const std::vector<double>& e) {
  const size_t n = e.size() - 1;
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<size_t>> cut(n, std::vector<size_t>(n, 0));
  for (size_t length = 1; length < n; ++length)
    for (size_t i = 0; i + length < n; ++i) {
      const size_t j = i + length;
      cost[i][j] = std::numeric_limits<double>::infinity();
      for (size_t k = i; k < j; ++k) {
        const double total = cost[i][k] + cost[k + 1][j] + e[i] * e[k + 1] * e[j + 1];
        if (total < cost[i][j]) cost[i][j] = total, cut[i][j] = k;
      }
    }
  return cut;
}

Tensor chained(const std::vector<Tensor>& matrices, const std::vector<std::vector<size_t>>& cut, size_t i, size_t j) {
  if (i == j) return matrices[i];
  const size_t k = cut[i][j];
  return matmul(chained(matrices, cut, i, k), chained(matrices, cut, k + 1, j));
}
}  // namespace

Tensor multi_dot(const std::vector<Tensor>& tensors) {
  if (tensors.size() < 2) refuse("multi_dot", "fewer than two tensors: give two or more");
  std::vector<Tensor> matrices = tensors;
  for (const Tensor& each : tensors) require_defined(each, "multi_dot");
  if (std::ranges::all_of(tensors, [&](const Tensor& each) { return are_halves(tensors.front(), each); })) {
    std::ranges::transform(tensors, matrices.begin(), at_least_f32);
    return cast(multi_dot(matrices), tensors.front().dtype());
  }
  const bool row = tensors.front().rank() == 1, column = tensors.back().rank() == 1;
  if (row) matrices.front() = unsqueeze(tensors.front(), 0);
  if (column) matrices.back() = unsqueeze(tensors.back(), 1);
  std::vector<double> extents;
  for (const Tensor& each : matrices) {
    require_rank("multi_dot", each, 2);
    if (extents.empty()) extents.push_back(static_cast<double>(each.size(0)));
    else if (extents.back() != static_cast<double>(each.size(0)))
      refuse("multi_dot", "a matrix of shape " + each.shape().text() + " follows one with " +
                              std::to_string(static_cast<int64_t>(extents.back())) + " columns: they must be equal");
    extents.push_back(static_cast<double>(each.size(1)));
  }
  const Tensor out = chained(matrices, best_cuts(extents), 0, matrices.size() - 1);
  const Tensor rows = column ? squeeze(out, {1}) : out;
  return row ? squeeze(rows, {0}) : rows;
}

Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias) {
  if (autocasting()) [[unlikely]]
    return in_low_precision(bilinear, input1, input2, weight, bias);
  if (are_halves(input1, input2, weight)) return rounded_once(input1, bilinear, input1, input2, weight, bias);
  for (const Tensor* each : {&input1, &input2, &weight}) require_defined(*each, "bilinear");
  bool fits = weight.rank() == 3 && input1.rank() && input1.rank() == input2.rank() && input1.size(-1) == weight.size(1) &&
              input2.size(-1) == weight.size(2);
  for (int i = 0; fits && i + 1 < input1.rank(); ++i) fits = input1.size(i) == input2.size(i);
  if (!fits)
    refuse("bilinear", "inputs " + both_shapes(input1, input2) + " and weight " + weight.shape().text() +
                           ": expected (.., i), (.., j) and (o, i, j)");
  const Tensor out = einsum("...i,oij,...j->...o", {input1, weight, input2});
  if (!bias.defined()) return out;
  if (bias.shape() != Shape{weight.size(0)})
    refuse("bilinear", "bias has shape " + bias.shape().text() + ": expected (" + std::to_string(weight.size(0)) + ",)");
  return add(out, bias);
}

}  // namespace plugrad
