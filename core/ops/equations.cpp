// Linear equations, and factors for solving them.
#include <core/ops/argument.hpp>
#include <core/ops/factors.hpp>
#include <core/ops/run.hpp>
#include <plugrad/ops/complex.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/linalg.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/masks.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/statistics.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>

namespace plugrad::linalg {

LinAlgError::~LinAlgError() = default;

namespace {

Tensor identities_like(const Tensor& a) { return expand(identity_like(a), a.shape()); }

// --- A system of fitting operands.

Tensor solved(const Tensor& a, const Tensor& b) {
  const Factors host("linalg.solve", a);
  const Factors::Lu factors = host.lu(host.take(a), Factors::Pivots::nonzero);
  return host.give(host.solve_lu(factors, host.take(b)));
}

Tensor solution(const Tensor& a, const Tensor& b) {
  static constexpr auto kRule =
      rule("solve", gradient<kInput0, kOutput>([](const Tensor& grad, const Tensor& matrix, const Tensor& x) {
             return neg(matmul(solution(transpose(matrix), grad), transpose(x)));
           }),
           gradient<kInput0>([](const Tensor& grad, const Tensor& matrix) { return solution(transpose(matrix), grad); }));
  return differentiable(kRule, solved(a, b), a, b);
}

struct Triangle {
  bool upper, unit;
};
Tensor solved(const Tensor& a, const Tensor& b, Triangle which) {
  const Factors host("linalg.solve_triangular", a);
  return host.give(host.solve_triangular(host.take(a), host.take(b), which.upper, which.unit));
}

Tensor triangle_of(const Tensor& x, Triangle which) {
  const int64_t beside = which.unit ? 1 : 0;
  return which.upper ? triu(x, beside) : tril(x, -beside);
}

Tensor solution(const Tensor& a, const Tensor& b, Triangle which) {
  static constexpr auto kRule = rule(
      "solve_triangular",
      gradient<kInput0, kOutput, kPayload>([](const Tensor& grad, const Tensor& matrix, const Tensor& x, Triangle kept) {
        const Tensor right = solution(transpose(matrix), grad, {!kept.upper, kept.unit});
        return neg(triangle_of(matmul(right, transpose(x)), kept));
      }),
      gradient<kInput0, kPayload>([](const Tensor& grad, const Tensor& matrix, Triangle kept) {
        return solution(transpose(matrix), grad, {!kept.upper, kept.unit});
      }));
  return differentiable(kRule, which, solved(a, b, which), a, b);
}

Tensor solution_of_lower(const Tensor& a, const Tensor& b) { return solution(a, b, {false, false}); }
Tensor solution_of_upper(const Tensor& a, const Tensor& b) { return solution(a, b, {true, false}); }
}  // namespace

Tensor solve(const Tensor& a, const Tensor& b, bool left) {
  require_defined(a, "linalg.solve");
  require_defined(b, "linalg.solve");
  if (is_vectors(a, b)) return squeeze(solve(left ? a : transpose(a), unsqueeze(b, -1)), {-1});
  if (!left) return transpose(solve(transpose(a), transpose(b)));
  const System system = system_of("linalg.solve", square_matrices("linalg.solve", a, Scalars::any), b, Scalars::any);
  return solution(system.a, system.b);
}

Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left, bool unitriangular) {
  const char* const name = "linalg.solve_triangular";
  if (!left) {
    const Tensor turned = transpose(matrices_of(name, a, Scalars::any)),
                 right = transpose(matrices_of(name, b, Scalars::any));
    return transpose(solve_triangular(turned, right, !upper, true, unitriangular));
  }
  const System system = system_of(name, square_matrices(name, a, Scalars::any), b, Scalars::any);
  return solution(system.a, system.b, {upper, unitriangular});
}

namespace {
Tensor inverted(const Tensor& a) {
  const Factors host("linalg.inv", a);
  const Factors::Lu factors = host.lu(host.take(a), Factors::Pivots::nonzero);
  return host.give(host.solve_lu(factors, contiguous(identities_like(factors.lu))));
}
}  // namespace

Tensor inv(const Tensor& matrix) {
  static constexpr auto kRule = rule("inv", gradient<kOutput>([](const Tensor& grad, const Tensor& inverse) {
                                       const Tensor turned = transpose(inverse);
                                       return neg(matmul(matmul(turned, grad), turned));
                                     }));
  const Tensor a = square_matrices("linalg.inv", matrix, Scalars::any);
  return differentiable(kRule, inverted(a), a);
}

// --- Determinants.

namespace {
// 1 for an even number of swaps, -1 for an odd number, in the dtype of lu.
Tensor sign_of(const Factors::Lu& factors) {
  const int64_t n = factors.pivots.size(-1);
  const Tensor unmoved = arange(1, n + 1, 1, DType::i32, factors.pivots.device());
  return prod(where(eq(factors.pivots, unmoved), 1, full_like(diagonal(factors.lu), -1)), {-1});
}

Tensor determinant(const Tensor& a) {
  const Factors host("linalg.det", a);
  const Factors::Lu factors = host.lu(host.take(a));
  return host.give(mul(prod(diagonal(factors.lu), {-1}), sign_of(factors)));
}

// A small matrix to add to singular matrices to make them regular, with a small number for each pivot of 0. Undefined if
// all are regular, except in a compiled step, which cannot look.
Tensor perturbation(const Tensor& a) {
  const Factors host("linalg.det", a);
  const Factors::Lu factors = host.lu(host.take(a));
  const Tensor pivots = diagonal(factors.lu);
  if (!observe::hides_elements() && !any(eq(pivots, 0)).item<bool>()) return {};
  const Tensor largest = max(abs(pivots), {-1}, true);
  const Tensor lacking = where(eq(pivots, 0), mul(where(eq(largest, 0), 1, largest), epsilon(a.dtype())), 0);
  const Tensor lower = add(tril(factors.lu, -1), identity_like(factors.lu));
  return host.give(host.swap_rows(factors.pivots, contiguous(mul(lower, unsqueeze(lacking, -2))), true));
}

// Each matrix times its number.
Tensor scaled(const Tensor& numbers, const Tensor& matrices) { return mul(unsqueeze(unsqueeze(numbers, -1), -1), matrices); }
}  // namespace

Tensor det(const Tensor& matrix) {
  static constexpr auto kRule =
      rule("det", gradient<kInput0, kOutput>([](const Tensor& grad, const Tensor& a, const Tensor& value) {
             const Tensor missing = perturbation(a);
             if (!missing.defined()) return scaled(mul(grad, value), transpose(inv(a)));
             const Tensor near = where(eq(missing, 0), a, add(a, missing));
             return scaled(mul(grad, det(near)), transpose(inv(near)));
           }));
  const Tensor a = square_matrices("linalg.det", matrix, Scalars::any);
  return differentiable(kRule, determinant(a), a);
}

namespace {
SlogDet sign_and_logarithm(const Tensor& a) {
  const Factors host("linalg.slogdet", a);
  const Factors::Lu factors = host.lu(host.take(a));
  const Tensor pivots = diagonal(factors.lu);
  return {host.give(mul(prod(sign(pivots), {-1}), sign_of(factors))), host.give(sum(log(abs(pivots)), {-1}))};
}
}  // namespace

SlogDet slogdet(const Tensor& matrix) {
  // The differential of ln det is tr(a^-1 da): its real part is that of logabsdet, its imaginary part turns the sign.
  static constexpr auto kRule = for_complex(
      rule("slogdet", gradient<kInput0>([](const Tensor& grad, const Tensor& a) { return scaled(grad, adjoint(inv(a))); })));
  static constexpr auto kSignRule =
      for_complex(rule("slogdet", gradient<kInput0, kOutput>([](const Tensor& grad, const Tensor& a, const Tensor& sign) {
                         const Tensor turn = imag(mul(conj(sign), grad));
                         return scaled(complex(zeros_like(turn), turn), adjoint(inv(a)));
                       })));
  const Tensor a = square_matrices("linalg.slogdet", matrix, Scalars::any);
  const SlogDet made = sign_and_logarithm(a);
  const Tensor sign = is_complex(a.dtype()) ? differentiable(kSignRule, made.sign, a) : made.sign;
  return {sign, differentiable(kRule, made.logabsdet, a)};
}

// --- LU.

namespace {
Tensor permutation(const Tensor& pivots, int64_t rows, DType dtype) {
  const Tensor like = expand(eye(rows, rows, dtype, pivots.device()), [&] {
    Shape shape = batch_of(pivots, 1);
    shape.push_back(rows);
    shape.push_back(rows);
    return shape;
  }());
  const Factors host("linalg.lu", like);
  return host.give(host.swap_rows(host.take(pivots), host.take(like), true));
}

Tensor lower_of(const Tensor& lu) {
  const int64_t k = std::min(lu.size(-2), lu.size(-1));
  const Tensor low = first(tril(lu, -1), -1, k);
  return add(low, identity_like(low));
}
Tensor upper_of(const Tensor& lu) { return first(triu(lu), -2, std::min(lu.size(-2), lu.size(-1))); }

// L^-T x and x U^-T.
Tensor by_lower(const Tensor& lower, const Tensor& x) { return solution(transpose(lower), x, {true, true}); }
Tensor by_upper(const Tensor& upper, const Tensor& x) { return transpose(solution(upper, transpose(x), {true, false})); }

// The gradient of the matrix with swapped rows. With square factors, dL = L tril(F, -1) and dU = triu(F) U for
// F = L^-1 dA U^-1; the rows of a higher matrix are A2 = L2 U, the columns of a wider matrix A2 = L U2.
Tensor lu_gradient(const Tensor& grad, const Tensor& lu) {
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  const Tensor lower = first(lower_of(lu), -2, k), upper = first(upper_of(lu), -1, k);
  Tensor to_lower = first(first(tril(grad, -1), -1, k), -2, k), to_upper = first(first(triu(grad), -2, k), -1, k), beside;
  if (m > n) {
    beside = by_upper(upper, rest(grad, -2, k));
    to_upper = sub(to_upper, triu(matmul(transpose(rest(lu, -2, k)), beside)));
  } else if (n > m) {
    beside = by_lower(lower, rest(grad, -1, k));
    to_lower = sub(to_lower, tril(matmul(beside, transpose(rest(lu, -1, k))), -1));
  }
  const Tensor inner = add(tril(matmul(transpose(lower), to_lower), -1), triu(matmul(to_upper, transpose(upper))));
  const Tensor square = by_upper(upper, by_lower(lower, inner));
  return beside.defined() ? cat({square, beside}, m > n ? -2 : -1) : square;
}

LuFactor factored(const Tensor& a) {
  const Factors host("linalg.lu_factor", a);
  const Factors::Lu factors = host.lu(host.take(a));
  return {host.give(factors.lu), host.give(factors.pivots)};
}
}  // namespace

LuFactor lu_factor(const Tensor& matrix) {
  static constexpr auto kRule =
      rule("lu_factor", gradient<kOutput, kPayload>([](const Tensor& grad, const Tensor& lu, const Tensor& pivots) {
             return matmul(permutation(pivots, lu.size(-2), lu.dtype()), lu_gradient(grad, lu));
           }));
  const Tensor a = matrices_of("linalg.lu_factor", matrix, Scalars::any);
  const LuFactor made = factored(a);
  return {differentiable(kRule, made.pivots, made.lu, a), made.pivots};
}

Lu lu(const Tensor& a) {
  const LuFactor factors = lu_factor(a);
  return {permutation(factors.pivots, factors.lu.size(-2), factors.lu.dtype()), lower_of(factors.lu), upper_of(factors.lu)};
}

Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint_of_a) {
  const char* const name = "linalg.lu_solve";
  require_dtype(name, pivots, DType::i32, "pivots");
  const Tensor factors = square_matrices(name, lu, Scalars::any);
  if (!left) return adjoint(lu_solve(lu, pivots, adjoint(matrices_of(name, b, Scalars::any)), true, !adjoint_of_a));
  if (batch_of(pivots, 1) != batch_of(factors) || pivots.size(-1) != factors.size(-1))
    refuse(name, "pivots of shape " + pivots.shape().text() + " do not fit the factors of shape " + factors.shape().text());
  const Tensor swaps = permutation(pivots, factors.size(-1), factors.dtype());
  if (adjoint_of_a) {
    const Tensor inner = solve_triangular(adjoint(factors), b, false);
    return matmul(swaps, solve_triangular(adjoint(factors), inner, true, true, true));
  }
  const Tensor inner = solve_triangular(factors, matmul(transpose(swaps), b), false, true, true);
  return solve_triangular(factors, inner, true);
}

// --- Cholesky.

namespace {
Tensor lower_factor(const Tensor& a) {
  const Factors host("linalg.cholesky", a);
  return host.give(host.cholesky(host.take(a)));
}
}  // namespace

Tensor cholesky(const Tensor& matrix, bool upper) {
  static constexpr auto kRule = for_complex(rule("cholesky", gradient<kOutput>([](const Tensor& grad, const Tensor& lower) {
                                                   const Tensor turned = adjoint(lower),
                                                                product = matmul(turned, tril(grad));
                                                   const Tensor half = div(add(tril(product), tril(product, -1)), 2);
                                                   const Tensor left = solution_of_upper(turned, half);
                                                   const Tensor both = solution_of_upper(turned, adjoint(left));
                                                   return div(add(both, adjoint(both)), 2);
                                                 })));
  const Tensor a = square_matrices("linalg.cholesky", matrix, Scalars::any);
  if (upper) return adjoint(cholesky(adjoint(a)));
  return differentiable(kRule, lower_factor(a), a);
}

Tensor cholesky_solve(const Tensor& b, const Tensor& l, bool upper) {
  const System system =
      system_of("linalg.cholesky_solve", square_matrices("linalg.cholesky_solve", l, Scalars::any), b, Scalars::any);
  const Tensor lower = upper ? adjoint(system.a) : system.a;
  return solution_of_upper(adjoint(lower), solution_of_lower(lower, system.b));
}

}  // namespace plugrad::linalg
