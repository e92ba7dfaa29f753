// Orthogonal factors of matrices: QR, eigenvectors, singular vectors; and functions of singular values.
#include <core/ops/argument.hpp>
#include <core/ops/factors.hpp>
#include <core/ops/packing.hpp>
#include <core/ops/run.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/linalg.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/masks.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>

namespace plugrad::linalg {
namespace {

Tensor as_row(const Tensor& x) { return unsqueeze(x, -2); }
Tensor as_column(const Tensor& x) { return unsqueeze(x, -1); }

// a / b, but 0 where both are 0: no gradient reaches such a place. The operands broadcast.
Tensor quotient(const Tensor& a, const Tensor& b) {
  Tensor none;
  {
    const NoGrad constant;
    none = logical_and(eq(a, 0), eq(b, 0));
  }
  return div(a, where(none, 1, b));
}

// --- QR.

// The gradient of a matrix with linearly independent columns.
Tensor qr_gradient(const Tensor& to_q, const Tensor& to_r, const Tensor& q, const Tensor& r) {
  const Tensor inner = sub(matmul(r, transpose(to_r)), matmul(transpose(to_q), q));
  const Tensor symmetric = add(tril(inner), transpose(tril(inner, -1)));
  return transpose(solve_triangular(r, transpose(add(to_q, matmul(q, symmetric))), true));
}

// The columns of a behind the first m are q times the same columns of r.
Tensor wide_qr_gradient(const Tensor& to_q, const Tensor& to_r, const Tensor& q, const Tensor& r) {
  const int64_t m = r.size(-2);
  const Tensor behind = rest(to_r, -1, m);
  const Tensor to_all = add(to_q, matmul(matmul(q, rest(r, -1, m)), transpose(behind)));
  return cat({qr_gradient(to_all, triu(first(to_r, -1, m)), q, first(r, -1, m)), matmul(q, behind)}, -1);
}

std::vector<Tensor> qr_factors(const Tensor& a, QrMode mode, bool only_r) {
  const Factors host("linalg.qr", a);
  std::vector<Tensor> made = host.qr(host.take(a), mode == QrMode::complete, only_r);
  for (Tensor& each : made) each = host.give(each);
  return made;
}
}  // namespace

Qr qr(const Tensor& matrix, QrMode mode) {
  static constexpr auto kRule =
      rule("qr", gradient<kOutput, kPayload>([](const Tensor& grad, const Tensor& packed, const Packing& packing) {
             const auto to = packing.unpack(grad), factors = packing.unpack(packed);
             const Tensor &q = factors[0], &r = factors[1];
             if (r.size(-2) > r.size(-1))
               refuse("linalg.qr", "QrMode::complete has no gradient for more rows than columns: use QrMode::reduced");
             if (r.size(-2) < r.size(-1)) return wide_qr_gradient(to[0], to[1], q, r);
             return qr_gradient(to[0], triu(to[1]), q, r);
           }));
  const Tensor a = matrices_of("linalg.qr", matrix);
  const bool only_r = mode == QrMode::r, is_recorded = a.requires_grad() && recording();
  const auto made = recorded(kRule, qr_factors(a, mode, only_r && !is_recorded), a);
  if (!only_r) return {made[0], made[1]};
  return {zeros({0}, a.dtype(), a.device()), made[1]};
}

// --- Eigenvectors of symmetric matrices.

namespace {
std::vector<Tensor> eigen_factors(const Tensor& a, bool only_values) {
  const Factors host("linalg.eigh", a);
  std::vector<Tensor> made = host.eigh(host.take(a), only_values);
  for (Tensor& each : made) each = host.give(each);
  return made;
}

// V (diag(gL) + (V^T gV) / E) V^T, where E holds the differences of eigenvalues.
Tensor eigh_gradient(const Tensor& to_values, const Tensor& to_vectors, const Tensor& values, const Tensor& vectors) {
  const Tensor is_diagonal = cast(identity_like(vectors), DType::boolean);
  const Tensor turned = matmul(transpose(vectors), to_vectors);
  const Tensor turns = quotient(where(is_diagonal, 0, turned), sub(as_row(values), as_column(values)));
  return matmul(matmul(vectors, where(is_diagonal, as_column(to_values), turns)), transpose(vectors));
}
}  // namespace

Eigh eigh(const Tensor& matrix, bool upper) {
  static constexpr auto kRule =
      rule("eigh", gradient<kOutput, kPayload>([](const Tensor& grad, const Tensor& packed, const Packing& packing) {
             const auto to = packing.unpack(grad), factors = packing.unpack(packed);
             return eigh_gradient(to[0], to[1], factors[0], factors[1]);
           }));
  const Tensor a = square_matrices("linalg.eigh", upper ? transpose(matrices_of("linalg.eigh", matrix)) : matrix);
  const auto made = recorded(kRule, eigen_factors(a, false), a);
  return {made[0], made[1]};
}

Tensor eigvalsh(const Tensor& matrix, bool upper) {
  const Tensor a = square_matrices("linalg.eigvalsh", matrix);
  if (a.requires_grad() && recording()) return eigh(a, upper).eigenvalues;
  return eigen_factors(upper ? transpose(a) : a, true)[0];
}

// --- Singular vectors.

namespace {
std::vector<Tensor> singular_factors(const Tensor& a, bool full, bool only_values) {
  const Factors host("linalg.svd", a);
  std::vector<Tensor> made = host.svd(host.take(a), full, only_values);
  for (Tensor& each : made) each = host.give(each);
  return made;
}

Tensor skew(const Tensor& x) { return sub(x, transpose(x)); }

// U [(skew(U^T gU) / E) S + S (skew(V^T gV) / E) + diag(gS)] V^T, where E holds the differences of squares of singular
// values, and the parts of gU and gV outside of the spaces of U and V.
Tensor svd_gradient(const Svd& to, const Svd& of) {
  const int64_t m = of.u.size(-2), n = of.vh.size(-1), k = of.s.size(-1);
  const Tensor v = transpose(of.vh), row = as_row(of.s), column = as_column(of.s);
  const Tensor differences = mul(sub(row, column), add(row, column));
  const Tensor left = matmul(transpose(of.u), to.u), right = matmul(of.vh, transpose(to.vh));
  const Tensor turns = add(mul(quotient(skew(left), differences), row), mul(column, quotient(skew(right), differences)));
  const Tensor is_diagonal = cast(identity_like(turns), DType::boolean);
  const Tensor inner = where(is_diagonal, as_column(to.s), turns);
  Tensor sum = matmul(matmul(of.u, inner), of.vh);
  if (m > k) sum = add(sum, matmul(quotient(sub(to.u, matmul(of.u, left)), row), of.vh));
  if (n > k) sum = add(sum, matmul(of.u, quotient(sub(to.vh, matmul(matmul(to.vh, v), of.vh)), column)));
  return sum;
}

// Without the further vectors of full matrices.
Svd reduced(const std::vector<Tensor>& parts) {
  const int64_t k = parts[1].size(-1);
  return {first(parts[0], -1, k), parts[1], first(parts[2], -2, k)};
}
}  // namespace

Svd svd(const Tensor& matrix, bool full_matrices) {
  static constexpr auto kRule =
      rule("svd", gradient<kOutput, kPayload>([](const Tensor& grad, const Tensor& packed, const Packing& packing) {
             return svd_gradient(reduced(packing.unpack(grad)), reduced(packing.unpack(packed)));
           }));
  const Tensor a = matrices_of("linalg.svd", matrix);
  const auto made = recorded(kRule, singular_factors(a, full_matrices, false), a);
  return {made[0], made[1], made[2]};
}

Tensor svdvals(const Tensor& matrix) {
  const Tensor a = matrices_of("linalg.svdvals", matrix);
  if (a.requires_grad() && recording()) return svd(a, false).s;
  return singular_factors(a, false, true)[1];
}

// --- What counts as 0.

namespace {
// The bound up to which singular values count as 0: (.., 1).
Tensor bound_of(const Tensor& s, const Tensor& a, std::optional<double> atol, std::optional<double> rtol) {
  const double usual = atol ? 0 : epsilon(a.dtype()) * static_cast<double>(std::max(a.size(-2), a.size(-1)));
  return maximum(mul(max(s, {-1}, true), rtol.value_or(usual)), atol.value_or(0));
}

// 1 / s, but 0 for values that count as 0.
Tensor inverse_values(const Tensor& s, const Tensor& a, std::optional<double> atol, std::optional<double> rtol) {
  if (!s.size(-1)) return s;
  const Tensor counts = gt(s, bound_of(s, a, atol, rtol));
  return where(counts, div(1, where(counts, s, 1)), 0);
}

struct Tolerances {
  std::optional<double> atol, rtol;
};
Tensor pseudoinverse(const Tensor& a, const Tolerances& given) {
  const Factors host("linalg.pinv", a);
  const auto parts = host.svd(host.take(a), false, false);
  const Tensor v = mul(transpose(parts[2]), as_row(inverse_values(parts[1], a, given.atol, given.rtol)));
  return host.give(matmul(v, transpose(parts[0])));
}

// The gradient of the pseudoinverse p of a, at constant rank.
Tensor pinv_gradient(const Tensor& grad, const Tensor& a, const Tensor& p) {
  const Tensor turned = transpose(grad), product = matmul(turned, p), beside = matmul(product, transpose(p));
  const Tensor outside = sub(beside, matmul(matmul(a, p), beside));
  const Tensor missing = matmul(matmul(transpose(p), p), sub(turned, matmul(product, a)));
  return add(sub(outside, transpose(matmul(p, product))), missing);
}
}  // namespace

Tensor pinv(const Tensor& matrix, std::optional<double> atol, std::optional<double> rtol) {
  static constexpr auto kRule =
      rule("pinv", gradient<kInput0, kOutput>(
                       [](const Tensor& grad, const Tensor& a, const Tensor& p) { return pinv_gradient(grad, a, p); }));
  const Tensor a = matrices_of("linalg.pinv", matrix);
  return differentiable(kRule, pseudoinverse(a, {atol, rtol}), a);
}

Tensor matrix_rank(const Tensor& matrix, std::optional<double> atol, std::optional<double> rtol) {
  const NoGrad unrecorded;
  const Tensor a = matrices_of("linalg.matrix_rank", matrix), s = svdvals(a);
  if (!s.size(-1)) return zeros(batch_of(a), DType::i64, a.device());
  return sum(gt(s, bound_of(s, a, atol, rtol)), {-1});
}

// --- Least squares.

namespace {
struct Fit {
  Tensor solution, values;
};
Fit fitted(const Tensor& a, const Tensor& b, std::optional<double> rcond) {
  const Factors host("linalg.lstsq", a);
  const auto parts = host.svd(host.take(a), false, false);
  const Tensor inner = matmul(transpose(parts[0]), host.take(b));
  const Tensor scaled = mul(as_column(inverse_values(parts[1], a, {}, rcond)), inner);
  return {host.give(matmul(transpose(parts[2]), scaled)), host.give(parts[1])};
}

// The solution is pinv(a) b.
Fit recorded_fit(const Tensor& a, const Tensor& b, std::optional<double> rcond) {
  using Bound = std::optional<double>;
  static constexpr auto kRule = rule(
      "lstsq",
      gradient<kInput0, kInput1, kPayload>([](const Tensor& grad, const Tensor& matrix, const Tensor& right, Bound kept) {
        return pinv_gradient(matmul(grad, transpose(right)), matrix, pinv(matrix, {}, kept));
      }),
      gradient<kInput0, kPayload>([](const Tensor& grad, const Tensor& matrix, Bound kept) {
        return matmul(transpose(pinv(matrix, {}, kept)), grad);
      }));
  const Fit made = fitted(a, b, rcond);
  return {differentiable(kRule, rcond, made.solution, a, b), made.values};
}

// Of a of more rows than columns, all of full rank. A compiled step cannot look at the ranks: it makes the residuals of
// matrices of a lower rank NaN.
Tensor residuals_of(const Tensor& a, const Tensor& b, const LeastSquares& found) {
  const int64_t columns = a.size(-1);
  const bool may_have_them = a.size(-2) > columns && found.rank.count(), in_step = observe::hides_elements();
  if (!may_have_them || (!in_step && min(found.rank).item<int64_t>() != columns)) return zeros({0}, a.dtype(), a.device());
  const Tensor distance = sub(matmul(a, found.solution), b), squares = sum(mul(distance, distance), {-2});
  return in_step ? where(eq(unsqueeze(found.rank, -1), columns), squares, std::numeric_limits<double>::quiet_NaN())
                 : squares;
}
}  // namespace

LeastSquares lstsq(const Tensor& matrix, const Tensor& right, std::optional<double> rcond) {
  const char* const name = "linalg.lstsq";
  require_defined(matrix, name);
  require_defined(right, name);
  const bool vectors = is_vectors(matrix, right);
  const auto [a, b] = system_of(name, matrix, vectors ? unsqueeze(right, -1) : right);
  const Fit fit = recorded_fit(a, b, rcond);
  LeastSquares found{fit.solution, {}, zeros(batch_of(a), DType::i64, a.device()), fit.values};
  if (fit.values.size(-1)) found.rank = sum(gt(fit.values, bound_of(fit.values, a, {}, rcond)), {-1});
  found.residuals = residuals_of(a, b, found);
  if (vectors) {
    found.solution = squeeze(found.solution, {-1});
    if (found.residuals.rank() > 1) found.residuals = squeeze(found.residuals, {-1});
  }
  return found;
}

}  // namespace plugrad::linalg
