// Linear algebra: the equations that define factors, on matrices of all shapes, and refused operands. Devices without host
// memory compute it elsewhere, which these tests allow.
#include <tests/core/expect.hpp>

#include <plugrad/ops/linalg.hpp>

#include <algorithm>
#include <cmath>

namespace plugrad::test {
namespace {
using namespace linalg;

class Linalg : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_device("cpu")) GTEST_SKIP() << "no plugin here factors matrices";
    set_fallback(Fallback::allow);
  }
  void TearDown() override { set_fallback(before_); }
  const Fallback before_ = fallback();
};

const Shape kShapes[] = {{1, 1}, {3, 3}, {5, 3}, {3, 5},    {2, 4, 4}, {2, 3, 20, 18}, {18, 40},
                         {0, 0}, {0, 3}, {3, 0}, {0, 2, 2}, {2, 0, 3}, {2, 33, 33}};
constexpr DType kDTypes[] = {DType::f32, DType::f64};
double tolerance(DType dtype) { return dtype == DType::f64 ? 1e-12 : 2e-4; }

Tensor matrices(const Shape& shape, DType dtype) { return of(dtype, spread(shape.count(), -2, 2, 0.3), shape); }
Tensor identity(const Tensor& like) { return expand(eye(like.size(-2), like.size(-1), like.dtype()), like.shape()); }
bool is_square(const Shape& shape) { return shape.back() == shape[shape.size() - 2]; }
// Matrices of full rank: each diagonal element is larger than the sum of the other elements of its row or column.
Tensor regular(const Shape& shape, DType dtype) {
  const Tensor x = matrices(shape, dtype);
  return x / std::max<double>(static_cast<double>(std::max(x.size(-1), x.size(-2))), 1) + identity(x) * 3;
}
Tensor positive(const Shape& shape, DType dtype) {
  const Tensor x = matrices(shape, dtype);
  return matmul(x, transpose(x)) + identity(x);
}
::testing::AssertionResult matches(const Tensor& a, const Tensor& b) {
  return close(a, b.shape(), elements(b), tolerance(a.dtype()) * static_cast<double>(a.rank() ? a.size(-1) + 1 : 1));
}
::testing::AssertionResult orthonormal(const Tensor& q) {
  const Tensor product = matmul(transpose(q), q);
  return matches(product, identity(product));
}

template <class Check> void each_matrix(Check check) {
  for (const Shape& shape : kShapes)
    for (const DType dtype : kDTypes) {
      SCOPED_TRACE(shape.text() + " " + dtype_name(dtype));
      check(shape, dtype);
    }
}

TEST_F(Linalg, FactorsGiveTheMatrixAgain) {
  each_matrix([](const Shape& shape, DType dtype) {
    const Tensor a = matrices(shape, dtype);
    const Lu l = lu(a);
    EXPECT_TRUE(matches(matmul(l.p, matmul(l.l, l.u)), a));
    EXPECT_TRUE(matches(tril(l.l), l.l));
    EXPECT_TRUE(matches(triu(l.u), l.u));
    for (const QrMode mode : {QrMode::reduced, QrMode::complete}) {
      const Qr q = qr(a, mode);
      EXPECT_TRUE(matches(matmul(q.q, q.r), a));
      EXPECT_TRUE(orthonormal(q.q));
      EXPECT_TRUE(matches(triu(q.r), q.r));
    }
    EXPECT_TRUE(matches(qr(a, QrMode::r).r, qr(a).r));
  });
}

TEST_F(Linalg, SingularVectorsGiveTheMatrixAgain) {
  each_matrix([](const Shape& shape, DType dtype) {
    const Tensor a = matrices(shape, dtype);
    const Svd s = svd(a, false), full = svd(a);
    EXPECT_TRUE(matches(matmul(s.u * unsqueeze(s.s, -2), s.vh), a));
    EXPECT_TRUE(orthonormal(s.u) && orthonormal(transpose(s.vh)));
    EXPECT_TRUE(orthonormal(full.u) && orthonormal(transpose(full.vh)));
    EXPECT_EQ(full.u.size(-1), a.size(-2));
    EXPECT_EQ(full.vh.size(-2), a.size(-1));
    EXPECT_TRUE(matches(svdvals(a), s.s));
  });
}

TEST_F(Linalg, Pseudoinverses) {
  each_matrix([](const Shape& shape, DType dtype) {
    const Tensor a = regular(shape, dtype), p = pinv(a), rank = matrix_rank(a);
    EXPECT_TRUE(matches(matmul(matmul(a, p), a), a));
    EXPECT_TRUE(matches(matmul(matmul(p, a), p), p));
    const double full = static_cast<double>(std::min(a.size(-1), a.size(-2)));
    EXPECT_EQ(rank.rank(), a.rank() - 2);
    EXPECT_EQ(elements(rank), std::vector<double>(static_cast<size_t>(rank.count()), full));
  });
}

TEST_F(Linalg, SymmetricMatrices) {
  each_matrix([](const Shape& shape, DType dtype) {
    if (!is_square(shape)) return;
    const Tensor x = matrices(shape, dtype), a = x + transpose(x);
    const Eigh e = eigh(a);
    EXPECT_TRUE(matches(matmul(e.eigenvectors * unsqueeze(e.eigenvalues, -2), transpose(e.eigenvectors)), a));
    EXPECT_TRUE(orthonormal(e.eigenvectors));
    EXPECT_TRUE(matches(eigvalsh(a), e.eigenvalues));
    EXPECT_TRUE(matches(eigvalsh(tril(a)), e.eigenvalues));
    EXPECT_TRUE(matches(eigvalsh(triu(a), true), e.eigenvalues));
    const Tensor p = positive(shape, dtype), l = cholesky(p);
    EXPECT_TRUE(matches(matmul(l, transpose(l)), p));
    EXPECT_TRUE(matches(tril(l), l));
    EXPECT_TRUE(matches(cholesky(p, true), transpose(l)));
    EXPECT_TRUE(matches(cholesky_solve(p, l), identity(p)));
    EXPECT_TRUE(matches(cholesky_solve(p, transpose(l), true), identity(p)));
  });
}

TEST_F(Linalg, SolutionsSolve) {
  each_matrix([](const Shape& shape, DType dtype) {
    if (!is_square(shape)) return;
    const Tensor a = regular(shape, dtype), b = matrices(shape, dtype), v = sum(b, {-1});
    EXPECT_TRUE(matches(matmul(a, solve(a, b)), b));
    EXPECT_TRUE(matches(matmul(solve(a, b, false), a), b));
    EXPECT_TRUE(matches(matmul(a, inv(a)), identity(a)));
    EXPECT_TRUE(matches(matmul(transpose(a), inv(transpose(a))), identity(a)));
    const LuFactor f = lu_factor(a);
    EXPECT_TRUE(matches(lu_solve(f.lu, f.pivots, b), solve(a, b)));
    EXPECT_TRUE(matches(lu_solve(f.lu, f.pivots, b, true, true), solve(transpose(a), b)));
    EXPECT_TRUE(matches(lu_solve(f.lu, f.pivots, b, false), solve(a, b, false)));
    EXPECT_TRUE(matches(solve_triangular(a, b, true), solve(triu(a), b)));
    EXPECT_TRUE(matches(solve_triangular(a, b, false, false), solve(tril(a), b, false)));
    EXPECT_TRUE(matches(solve_triangular(a * 0.01, b, false, true, true), solve(tril(a * 0.01, -1) + identity(a), b)));
    EXPECT_TRUE(matches(lstsq(a, b).solution, solve(a, b)));
    EXPECT_TRUE(matches(solve(a, v), squeeze(solve(a, unsqueeze(v, -1)), {-1})));
    EXPECT_TRUE(matches(slogdet(a).sign * exp(slogdet(a).logabsdet), det(a)));
  });
}

TEST_F(Linalg, KnownValues) {
  const Tensor a = f64({1, 2, 3, 4}, {2, 2});
  EXPECT_TRUE(close(det(a), {}, {-2}, 1e-15));
  EXPECT_TRUE(close(inv(a), {2, 2}, {-2, 1, 1.5, -0.5}, 1e-15));
  EXPECT_TRUE(close(lu_factor(a).pivots, {2}, {2, 2}));
  EXPECT_TRUE(close(lu_factor(a).lu, {2, 2}, {3, 4, 1.0 / 3, 2.0 / 3}, 1e-15));
  EXPECT_TRUE(close(cholesky(f64({4, 99, 2, 5}, {2, 2})), {2, 2}, {2, 0, 1, 2}, 1e-15));
  EXPECT_TRUE(close(eigvalsh(f64({2, 1, 1, 2}, {2, 2})), {2}, {1, 3}, 1e-15));
  EXPECT_TRUE(close(svdvals(f64({3, 0, 0, -4}, {2, 2})), {2}, {4, 3}, 1e-15));
  EXPECT_TRUE(close(pinv(f64({1, 1, 1, 1}, {2, 2})), {2, 2}, {0.25, 0.25, 0.25, 0.25}, 1e-15));
  EXPECT_TRUE(close(solve(i64({2, 0, 0, 4}, {2, 2}), i64({2, 2})), {2}, {1, 0.5}));
  EXPECT_EQ(inv(i64({2, 0, 0, 4}, {2, 2})).dtype(), DType::f32);
  EXPECT_TRUE(close(linalg::matrix_power(a, 3), {2, 2}, {37, 54, 81, 118}));
  EXPECT_TRUE(close(linalg::matrix_power(a, -1), {2, 2}, {-2, 1, 1.5, -0.5}, 1e-15));
  EXPECT_TRUE(close(linalg::matrix_power(a, 0), {2, 2}, {1, 0, 0, 1}));
  EXPECT_TRUE(close(linalg::diagonal(counting({2, 3, 4}), 1), {2, 3}, {1, 6, 11, 13, 18, 23}));
  EXPECT_TRUE(close(linalg::diagonal(counting({3, 2}), -2), {1}, {4}));
  EXPECT_TRUE(close(linalg::diagonal(counting({3, 2}), 2), {0}, {}));
  EXPECT_TRUE(close(vecdot(a, a, 0), {2}, {10, 20}));
}

TEST_F(Linalg, Norms) {
  const Tensor a = f64({1, -2, 3, 4, -5, 6}, {2, 3});
  EXPECT_TRUE(close(matrix_norm(a), {}, {std::sqrt(91)}, 1e-15));
  EXPECT_TRUE(close(matrix_norm(a, 1), {}, {9}));
  EXPECT_TRUE(close(matrix_norm(a, -1), {}, {5}));
  EXPECT_TRUE(close(matrix_norm(a, HUGE_VAL), {}, {15}));
  EXPECT_TRUE(close(matrix_norm(a, -HUGE_VAL, {0, 1}, true), {1, 1}, {6}));
  EXPECT_TRUE(close(matrix_norm(a, 1, {1, 0}), {}, {15}));
  EXPECT_TRUE(close(matrix_norm(f64({3, 0, 0, -4}, {2, 2}), 2), {}, {4}, 1e-15));
  EXPECT_TRUE(close(matrix_norm(f64({3, 0, 0, -4}, {2, 2}), -2), {}, {3}, 1e-15));
  EXPECT_TRUE(close(matrix_norm(f64({3, 0, 0, -4}, {2, 2}), MatrixNorm::nuclear), {}, {7}, 1e-15));
  EXPECT_TRUE(close(matrix_norm(counting({2, 3, 2}), 1, {0, 2}), {3}, {8, 12, 16}));
  EXPECT_TRUE(close(cond(f64({3, 0, 0, -4}, {2, 2})), {}, {4.0 / 3}, 1e-15));
  EXPECT_TRUE(close(cond(f64({3, 0, 0, -4, 1, 1, 1, 1}, {2, 2, 2}), 1), {2}, {4.0 / 3, HUGE_VAL}, 1e-15));
  EXPECT_TRUE(close(vector_norm(i64({3, 4})), {}, {5}));
}

TEST_F(Linalg, LeastSquares) {
  const Tensor a = f64({1, 0, 0, 1, 0, 0}, {3, 2}), b = f64({1, 2, 3, 4, 5, 6}, {3, 2});
  const auto full = lstsq(a, b);
  EXPECT_TRUE(close(full.solution, {2, 2}, {1, 2, 3, 4}, 1e-15));
  EXPECT_TRUE(close(full.residuals, {2}, {25, 36}, 1e-15));
  EXPECT_TRUE(close(full.rank, {}, {2}));
  EXPECT_TRUE(close(full.singular_values, {2}, {1, 1}, 1e-15));
  const auto low = lstsq(f64({1, 1, 1, 1}, {2, 2}), f64({2, 4}));
  EXPECT_TRUE(close(low.solution, {2}, {1.5, 1.5}, 1e-15));
  EXPECT_TRUE(close(low.rank, {}, {1}));
  EXPECT_EQ(low.residuals.count(), 0);
}

TEST_F(Linalg, SingularMatrices) {
  const Tensor a = f64({1, 0, 0, 1, 1, 2, 2, 4}, {2, 2, 2});
  EXPECT_TRUE(close(det(a), {2}, {1, 0}));
  EXPECT_TRUE(close(slogdet(a).sign, {2}, {1, 0}));
  EXPECT_TRUE(close(slogdet(a).logabsdet, {2}, {0, -HUGE_VAL}));
  EXPECT_TRUE(close(matrix_rank(a), {2}, {2, 1}));
  for (const auto& f : {+[](const Tensor& x) { return inv(x); }, +[](const Tensor& x) { return solve(x, x); }})
    EXPECT_TRUE(throws(Code::invalid, {"matrix 1 of the batch", "singular", "pivot 1"}, [&] { f(a); }));
  EXPECT_TRUE(throws(Code::invalid, {"[linalg.inv]", "the matrix is singular", "pivot 0"}, [] { inv(f64({0}, {1, 1})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[linalg.cholesky]", "not positive definite", "pivot 1"},
                     [] { cholesky(f64({1, 2, 2, 1}, {2, 2})); }));
  EXPECT_THROW(inv(a), LinAlgError);
}

TEST_F(Linalg, TheGradientOfTheDeterminantIsRightAtSingularMatrices) {
  for (const auto& [values, adjugate] : std::vector<std::pair<std::vector<double>, std::vector<double>>>{
           {{1, 2, 2, 4}, {4, -2, -2, 1}}, {{0, 0, 0, 0}, {0, 0, 0, 0}}, {{0, 0, 0, 3}, {3, 0, 0, 0}}}) {
    const Tensor a = f64(values, {2, 2}).requires_grad_();
    EXPECT_TRUE(close(grad({det(a)}, {a})[0], {2, 2}, adjugate, 1e-12));
  }
}

TEST_F(Linalg, NothingIsDerivedFromEqualValues) {
  const Tensor a = f64({1, 0, 0, 1}, {2, 2}).requires_grad_();
  EXPECT_TRUE(close(grad({sum(svdvals(a))}, {a})[0], {2, 2}, {1, 0, 0, 1}, 1e-15));
  EXPECT_TRUE(close(grad({sum(eigvalsh(a))}, {a})[0], {2, 2}, {1, 0, 0, 1}, 1e-15));
  EXPECT_TRUE(throws(Code::invalid, {"[linalg.qr]", "reduced"}, [] {
    const Tensor high = matrices({3, 2}, DType::f64).requires_grad_();
    grad({sum(qr(high, QrMode::complete).q)}, {high});
  }));
}

TEST_F(Linalg, WhatDoesNotFitIsRefused) {
  const Tensor a = f64({1, 2, 3, 4, 5, 6}, {2, 3}), half = of(DType::f16, {1, 2, 3, 4}, {2, 2});
  EXPECT_TRUE(throws(Code::invalid, {"[linalg.inv]", "(2, 3)", "square"}, [&] { inv(a); }));
  EXPECT_TRUE(throws(Code::invalid, {"[linalg.svd]", "(2,)", "two axes"}, [] { svd(f64({1, 2})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[linalg.inv]", "f16", "cast"}, [&] { inv(half); }));
  EXPECT_TRUE(throws(Code::invalid, {"[linalg.solve]", "(2, 2)", "(3, 1)", "2 rows"},
                     [] { solve(f64({1, 2, 3, 4}, {2, 2}), counting({3, 1})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[linalg.lstsq]", "rows"}, [&] { lstsq(a, counting({3, 1})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[linalg.matrix_norm]", "3"}, [&] { matrix_norm(a, 3); }));
  EXPECT_TRUE(throws(Code::invalid, {"[linalg.lu_solve]", "pivots"},
                     [&] { lu_solve(f64({1}, {1, 1}), of(DType::i32, {1, 1}, {2}), f64({1}, {1, 1})); }));
  const double nan = std::nan("");
  EXPECT_THROW(svd(f64({nan, 0, 0, 1}, {2, 2})), LinAlgError);
  EXPECT_THROW(eigh(f64({nan, 0, 0, 1}, {2, 2})), LinAlgError);
  EXPECT_THROW(cholesky(f64({nan, 0, 0, 1}, {2, 2})), LinAlgError);
}

TEST(LinalgFallback, ADeviceThatCannotFactorSaysSo) {
  if (!has_device("cpu")) GTEST_SKIP() << "no plugin here factors matrices";
  const Tensor a = f64({2}, {1, 1});
  const uint64_t before = a.device().counters().host_fallbacks;
  const Thrown plain = thrown([&] { inv(a); });
  if (!plain.any) GTEST_SKIP() << a.device().name() << " factors matrices itself";
  EXPECT_EQ(plain.code, Code::unsupported);
  for (const char* part : {"[linalg.inv]", "plugrad.linalg/0", "PLUGRAD_FALLBACK"})
    EXPECT_NE(plain.message.find(part), std::string::npos) << plain.message;
  EXPECT_EQ(a.device().counters().host_fallbacks, before);
  set_fallback(Fallback::allow);
  EXPECT_TRUE(close(inv(a), {1, 1}, {0.5}));
  EXPECT_EQ(inv(a).device(), a.device());
  set_fallback(Fallback::error);
  EXPECT_EQ(a.device().counters().host_fallbacks, before + 2);
}

}  // namespace
}  // namespace plugrad::test
