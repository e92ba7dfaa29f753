// Gradients of linear algebra. Matrices are kept away from singular matrices, and results with arbitrary signs go through
// even functions.
#include <tests/core/gradient_rows.hpp>

#include <plugrad/ops/linalg.hpp>

#include <cmath>

namespace plugrad::test {
namespace {
constexpr double kLow = -2, kHigh = 2;
using Rows = std::vector<GradientRow>;
using I = const Inputs&;
using namespace linalg;

// 0.3 x plus a matrix with 2, 3.5, 5, ... on its diagonal: regular, with singular values that differ.
Tensor regular(const Tensor& x) {
  const int64_t m = x.size(-2), n = x.size(-1);
  return x * 0.3 + eye(m, n, DType::f64) * unsqueeze(arange(0, m, 1, DType::f64) * 1.5 + 2, 1);
}
Tensor symmetric(const Tensor& x) { return regular(x + transpose(x)); }
Tensor definite(const Tensor& x) { return matmul(x, transpose(x)) + eye(x.size(-2), -1, DType::f64) * 2; }
Tensor even(const Tensor& x) { return x * x; }

Tensor all_of(const Lu& made) { return matmul(made.l, made.u * 2) + made.u * 3 - sum(exp(made.l)); }
Tensor all_of(const Qr& made) { return cat({made.q, made.r}, made.q.size(-1) == made.r.size(-1) ? -2 : -1); }
Tensor all_of(const Eigh& made) { return even(made.eigenvectors) + exp(unsqueeze(made.eigenvalues, -2) * 0.2); }
Tensor all_of(const Svd& made) {
  const int64_t k = made.s.size(-1);
  const Tensor u = slice(made.u, -1, 0, k), vh = slice(made.vh, -2, 0, k);
  return cat({even(u), unsqueeze(made.s, -2), transpose(even(vh)), u * select(vh, -1, 0)}, -2);
}

Rows equation_rows() {
  return {
      {"solve", "Matrix", {{3, 3}, {3, 2}}, kLow, kHigh, [](I x) { return solve(regular(x[0]), x[1]); }},
      {"solve", "Batch", {{2, 2, 2}, {2, 1}}, kLow, kHigh, [](I x) { return solve(regular(x[0]), x[1]); }},
      {"solve", "Vector", {{3, 3}, {3}}, kLow, kHigh, [](I x) { return solve(regular(x[0]), x[1]); }},
      {"solve", "Right", {{2, 2}, {3, 2}}, kLow, kHigh, [](I x) { return solve(regular(x[0]), x[1], false); }},
      {"inv", "Batch", {{2, 3, 3}}, kLow, kHigh, [](I x) { return inv(regular(x[0])); }},
      {"det", "Batch", {{2, 3, 3}}, kLow, kHigh, [](I x) { return det(regular(x[0])) * 0.1; }},
      {"det", "Swapped", {{3, 3}}, kLow, kHigh, [](I x) { return det(flip(regular(x[0]), {0})) * 0.1; }},
      {"slogdet", "Batch", {{2, 3, 3}}, kLow, kHigh, [](I x) { return slogdet(regular(x[0])).logabsdet; }},
      {"solve_triangular", "Upper", {{2, 3, 3}, {3, 2}}, kLow, kHigh,
       [](I x) { return solve_triangular(regular(x[0]), x[1], true); }},
      {"solve_triangular", "RightUnit", {{3, 3}, {2, 3}}, kLow, kHigh,
       [](I x) { return solve_triangular(x[0] * 0.3, x[1], false, false, true); }},
      {"lu_factor", "Square", {{2, 3, 3}}, kLow, kHigh, [](I x) { return exp(lu_factor(regular(x[0])).lu * 0.3); }},
      {"lu_factor", "High", {{4, 2}}, kLow, kHigh, [](I x) { return exp(lu_factor(flip(regular(x[0]), {0})).lu * 0.3); }},
      {"lu_factor", "Wide", {{2, 4}}, kLow, kHigh, [](I x) { return exp(lu_factor(regular(x[0])).lu * 0.3); }},
      {"lu", "Square", {{3, 3}}, kLow, kHigh, [](I x) { return all_of(lu(regular(x[0]))); }},
      {"lu_solve", "Plain", {{3, 3}, {3, 2}}, kLow, kHigh,
       [](I x) {
         const LuFactor factors = lu_factor(flip(regular(x[0]), {0}));
         return lu_solve(factors.lu, factors.pivots, x[1]) + lu_solve(factors.lu, factors.pivots, x[1], true, true);
       }},
      {"cholesky", "Lower", {{2, 3, 3}}, kLow, kHigh, [](I x) { return cholesky(definite(x[0])); }},
      {"cholesky", "Upper", {{2, 2}}, kLow, kHigh, [](I x) { return exp(cholesky(definite(x[0]), true) * 0.5); }},
      {"cholesky_solve", "Lower", {{3, 1}, {3, 3}}, kLow, kHigh,
       [](I x) { return cholesky_solve(x[0], regular(x[1])) + cholesky_solve(x[0], regular(x[1]), true); }},
  };
}

Rows factor_rows() {
  return {
      {"qr", "Square", {{2, 3, 3}}, kLow, kHigh, [](I x) { return all_of(qr(regular(x[0]))); }},
      {"qr", "High", {{4, 2}}, kLow, kHigh, [](I x) { return all_of(qr(regular(x[0]))); }},
      {"qr", "Wide", {{2, 4}}, kLow, kHigh, [](I x) { return all_of(qr(regular(x[0]), QrMode::complete)); }},
      {"qr", "OnlyR", {{3, 2}}, kLow, kHigh, [](I x) { return exp(qr(regular(x[0]), QrMode::r).r * 0.3); }},
      {"eigh", "Lower", {{2, 3, 3}}, kLow, kHigh, [](I x) { return all_of(eigh(symmetric(x[0]))); }},
      {"eigh", "Upper", {{2, 2}}, kLow, kHigh, [](I x) { return all_of(eigh(symmetric(x[0]), true)); }},
      {"eigvalsh", "Batch", {{2, 3, 3}}, kLow, kHigh, [](I x) { return exp(eigvalsh(symmetric(x[0])) * 0.2); }},
      {"svd", "Square", {{2, 2, 2}}, kLow, kHigh, [](I x) { return all_of(svd(regular(x[0]))); }},
      {"svd", "High", {{4, 2}}, kLow, kHigh, [](I x) { return all_of(svd(regular(x[0]), false)); }},
      {"svd", "FullWide", {{2, 3}}, kLow, kHigh, [](I x) { return all_of(svd(regular(x[0]), true)); }},
      {"svdvals", "High", {{2, 3, 2}}, kLow, kHigh, [](I x) { return exp(svdvals(regular(x[0])) * 0.2); }},
      {"pinv", "High", {{2, 3, 2}}, kLow, kHigh, [](I x) { return pinv(regular(x[0])); }},
      {"pinv", "OfLowRank", {{3, 2}, {2, 4}}, kLow, kHigh,
       [](I x) { return pinv(matmul(regular(x[0]), regular(x[1])), {}, 1e-6); }},
      {"lstsq", "High", {{4, 2}, {4, 2}}, kLow, kHigh, [](I x) { return lstsq(regular(x[0]), x[1]).solution; }},
      {"lstsq", "WideVector", {{2, 3}, {2}}, kLow, kHigh, [](I x) { return lstsq(regular(x[0]), x[1]).solution; }},
      {"lstsq", "Residuals", {{3, 2}, {3, 2}}, kLow, kHigh, [](I x) { return lstsq(regular(x[0]), x[1]).residuals; }},
  };
}

Rows norm_rows() {
  return {
      {"vector_norm", "Axis", {{2, 3}}, 0.5, 2.5, [](I x) { return vector_norm(x[0], 3, {1}, true); }},
      {"matrix_norm", "Frobenius", {{2, 3, 2}}, kLow, kHigh, [](I x) { return matrix_norm(x[0]); }},
      {"matrix_norm", "Nuclear", {{2, 2}}, kLow, kHigh,
       [](I x) { return matrix_norm(regular(x[0]), MatrixNorm::nuclear, {1, 0}, true); }},
      {"matrix_norm", "Largest", {{3, 2}}, kLow, kHigh, [](I x) { return matrix_norm(regular(x[0]), 2); }},
      {"matrix_norm", "Columns", {{3, 2}}, 0.5, 2.5, [](I x) { return exp(matrix_norm(regular(x[0]), 1) * 0.2); }, {}, true},
      {"cond", "Spectral", {{3, 2}}, kLow, kHigh, [](I x) { return cond(regular(x[0])); }},
      {"cond", "Frobenius", {{2, 2}}, kLow, kHigh, [](I x) { return cond(regular(x[0]), MatrixNorm::frobenius); }},
      {"matrix_power", "Cube", {{2, 2}}, kLow, kHigh, [](I x) { return linalg::matrix_power(x[0], 3) * 0.2; }},
      {"matrix_power", "Negative", {{2, 2}}, kLow, kHigh, [](I x) { return linalg::matrix_power(regular(x[0]), -2); }},
      {"vecdot", "Axis", {{2, 3}, {3}}, kLow, kHigh, [](I x) { return exp(vecdot(x[0], x[1]) * 0.1); }},
      {"diagonal", "Below", {{2, 3, 2}}, kLow, kHigh, [](I x) { return exp(linalg::diagonal(x[0], -1)); }},
  };
}
}  // namespace

std::vector<GradientRow> linalg_rows() {
  Rows all;
  for (Rows (*family)() : {equation_rows, factor_rows, norm_rows})
    for (GradientRow& row : family()) {
      row.falls_back = true;
      all.push_back(std::move(row));
    }
  return all;
}

}  // namespace plugrad::test
