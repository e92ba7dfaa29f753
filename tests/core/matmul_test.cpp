// Products of matrices, vectors and batches against three nested loops.
#include <tests/core/expect.hpp>

#include <cmath>
#include <limits>

namespace plugrad::test {
namespace {
struct Product {
  Shape a, b, out;
};
const Product kProducts[] = {
    {{2, 3}, {3, 4}, {2, 4}},
    {{1, 1}, {1, 1}, {1, 1}},
    {{3}, {3}, {}},
    {{3}, {3, 2}, {2}},
    {{2, 3}, {3}, {2}},
    {{5, 2, 3}, {3, 4}, {5, 2, 4}},
    {{2, 3}, {5, 3, 4}, {5, 2, 4}},
    {{4, 1, 2, 3}, {5, 3, 2}, {4, 5, 2, 2}},
    {{3}, {2, 3, 4}, {2, 4}},
    {{2, 4, 3}, {3}, {2, 4}},
    {{1, 2, 1, 2, 1, 1, 2, 3}, {2, 1, 2, 1, 1, 1, 3, 2}, {2, 2, 2, 2, 1, 1, 2, 2}},
    {{0, 3}, {3, 2}, {0, 2}},
    {{2, 0}, {0, 3}, {2, 3}},
    {{0, 2, 3}, {3, 2}, {0, 2, 2}},
    {{0}, {0}, {}},
    {{0}, {0, 2}, {2}},
    {{17, 33}, {33, 19}, {17, 19}},
    {{70, 65}, {65, 130}, {70, 130}},
};

std::vector<double> naive(const std::vector<double>& a, Shape a_shape, const std::vector<double>& b, Shape b_shape,
                          Shape out) {
  if (b_shape.rank() == 1) b_shape.push_back(1), out.push_back(1);
  if (a_shape.rank() == 1) {
    a_shape = {1, a_shape[0]};
    out.push_back(out.back());
    out[out.size() - 2] = 1;
  }
  std::vector<double> values;
  for (const Shape& at : positions(out)) {
    Shape left = within(at, a_shape), right = within(at, b_shape);
    const size_t row = a_shape.size() - 2, column = b_shape.size() - 1;
    left[row] = at[at.size() - 2];
    right[column] = at.back();
    double total = 0;
    for (int64_t k = 0; k < a_shape.back(); ++k) {
      left[row + 1] = right[column - 1] = k;
      total += a[static_cast<size_t>(offset(left, a_shape))] * b[static_cast<size_t>(offset(right, b_shape))];
    }
    values.push_back(total);
  }
  return values;
}

TEST(Matmul, EqualsTheLoops) {
  for (DType dtype : {DType::f64, DType::f32})
    for (const Product& each : kProducts) {
      const Tensor a = of(dtype, spread(each.a.count(), -1, 1), each.a),
                   b = of(dtype, spread(each.b.count(), -1, 1, 0.25), each.b);
      const std::vector<double> expected = naive(elements(a), each.a, elements(b), each.b, each.out);
      EXPECT_TRUE(close(matmul(a, b), each.out, expected, dtype == DType::f32 ? 1e-5 : 1e-13)) << dtype << each.a << each.b;
    }
}

TEST(Matmul, StridedOperands) {
  const Tensor a = f64(spread(4 * 6, -1, 1), {4, 6}), b = f64(spread(6 * 4, -2, 1), {6, 4});
  const auto dense = [](const Tensor& x) { return f64(elements(x), x.shape()); };
  const auto expect_equal = [&](const Tensor& x, const Tensor& y) {
    EXPECT_TRUE(close(matmul(x, y), matmul(dense(x), dense(y)).shape(), elements(matmul(dense(x), dense(y))), 1e-14))
        << x.strides() << y.strides();
  };
  expect_equal(transpose(b), transpose(a));
  expect_equal(slice(a, 1, -1, -7, -2), slice(b, 0, 1, 6, 2));
  expect_equal(slice(a, 0, 3, -5, -1), slice(b, 1, 0, 4, 3));
  expect_equal(expand(unsqueeze(slice(a, 0, 0, 1), 0), {3, 5, 6}), b);
  expect_equal(permute(reshape(a, {2, 2, 6}), {1, 0, 2}), expand(b, {2, 6, 4}));
}

// Small integers, whose sums are exact in any order, so that every path of a kernel must give the same result.
std::vector<double> wholes(int64_t count, uint64_t seed) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<double>((static_cast<uint64_t>(i) + seed) * 2654435761u / 64 % 7) - 3);
  return values;
}

// A batch of matrices (rows, columns) from row-major values; stored transposed if `transposed` is set.
Tensor matrices(DType dtype, const std::vector<double>& values, int64_t batch, int64_t rows, int64_t columns,
                bool transposed) {
  if (!transposed) return of(dtype, values, {batch, rows, columns});
  std::vector<double> stored(values.size());
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        stored[static_cast<size_t>((b * columns + c) * rows + r)] =
            values[static_cast<size_t>((b * rows + r) * columns + c)];
  return permute(of(dtype, stored, {batch, columns, rows}), {0, 2, 1});
}

struct Size {
  int64_t batch, m, k, n;
};
std::vector<double> product(const Size& s, const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> c(static_cast<size_t>(s.batch * s.m * s.n));
  for (int64_t row = 0; row < s.batch * s.m; ++row)
    for (int64_t i = 0; i < s.k; ++i)
      for (int64_t j = 0; j < s.n; ++j)
        c[static_cast<size_t>(row * s.n + j)] +=
            a[static_cast<size_t>(row * s.k + i)] * b[static_cast<size_t>((row / s.m * s.k + i) * s.n + j)];
  return c;
}

// Whole and partial strips and panels, several slices of k, more than one packed part, power-of-two strides.
const Size kSizes[] = {{1, 1, 1, 1},      {1, 1, 70, 300},    {1, 3, 1, 130},   {1, 7, 5, 65},      {1, 13, 64, 64},
                       {1, 15, 9, 33},    {1, 29, 600, 31},   {2, 5, 257, 129}, {1, 37, 300, 500},  {3, 8, 90, 95},
                       {1, 40, 1, 1000},  {1, 16, 1024, 40},  {1, 64, 3, 1024}, {1, 2, 1100, 1000}, {9, 3, 520, 250},
                       {2, 20, 200, 300}, {1, 100, 384, 290}, {1, 30, 800, 384}};

TEST(Matmul, IsExactForWholeNumbersInAnyLayout) {
  for (const Size& s : kSizes) {
    const std::vector<double> left = wholes(s.batch * s.m * s.k, 1), right = wholes(s.batch * s.k * s.n, 5);
    const std::vector<double> expected = product(s, left, right);
    for (const DType dtype : {DType::f32, DType::f64})
      for (const int layout : {0, 1, 2, 3}) {
        const Tensor a = matrices(dtype, left, s.batch, s.m, s.k, layout & 1),
                     b = matrices(dtype, right, s.batch, s.k, s.n, layout & 2);
        EXPECT_TRUE(elements(matmul(a, b)) == expected)
            << dtype << " " << s.batch << " x (" << s.m << ", " << s.k << ", " << s.n << "), layout " << layout;
      }
  }
}

// Operands of one column, whose rows and columns are both contiguous.
TEST(Matmul, OuterProductsOfManyRows) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (const int64_t columns : {2, 4, 8}) {
      const Size s{1, 2100, 1, columns};
      const std::vector<double> left = wholes(s.m, 1), right = wholes(s.n, 5);
      const Tensor a = of(dtype, left, {s.m, 1}), b = of(dtype, right, {1, s.n});
      EXPECT_TRUE(elements(matmul(a, b)) == product(s, left, right)) << dtype << " " << columns;
      const Tensor turned = matmul(transpose(b), transpose(a));
      EXPECT_TRUE(elements(transpose(turned)) == product(s, left, right)) << dtype << " " << columns << " turned";
    }
}

// Memory next to an operand, or padding of its copy, does not affect the output.
TEST(Matmul, InfinityAndNaNStayInTheirRowsAndColumns) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Size& s : {Size{1, 9, 70, 67}, Size{1, 35, 300, 501}})
    for (const int layout : {0, 1, 2, 3}) {
      std::vector<double> left(static_cast<size_t>(s.m * s.k), 1), right(static_cast<size_t>(s.k * s.n), 1);
      left[static_cast<size_t>((s.m - 1) * s.k + 4)] = infinity;
      right[static_cast<size_t>(4 * s.n + s.n - 1)] = 0;
      std::vector<double> expected(static_cast<size_t>(s.m * s.n), static_cast<double>(s.k));
      for (int64_t row = 0; row < s.m; ++row) expected[static_cast<size_t>(row * s.n + s.n - 1)] -= 1;
      for (int64_t j = 0; j < s.n; ++j) expected[static_cast<size_t>((s.m - 1) * s.n + j)] = infinity;
      expected.back() = std::nan("");
      const Tensor a = matrices(DType::f32, left, 1, s.m, s.k, layout & 1),
                   b = matrices(DType::f32, right, 1, s.k, s.n, layout & 2);
      EXPECT_TRUE(close(elements(matmul(a, b)), expected, 0)) << s.m << " rows, layout " << layout;
    }
}

// A kernel may compute several rows at a time, and the last rows in another way.
TEST(Matmul, EqualRowsTimesAVectorAreEqual) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const int64_t rows : {1, 2, 3, 4, 5, 7, 9, 103})
      for (const int64_t terms : {1, 3, 16, 37, 256, 300}) {
        const Tensor row = randn({1, terms}, dtype), vector = randn({terms, 1}, dtype);
        const std::vector<double> got = elements(matmul(contiguous(expand(row, {rows, terms})), vector));
        for (const double each : got) EXPECT_EQ(each, got[0]) << rows << " rows of " << terms;
      }
}

TEST(Matmul, BadShapesAreNamed) {
  EXPECT_TRUE(
      throws(Code::invalid, {"[matmul]", "inner", "(3, 4) x (5, 6)"}, [] { matmul(counting({3, 4}), counting({5, 6})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[matmul]", "(3,) x (4,)"}, [] { matmul(counting({3}), counting({4})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[matmul]", "batch", "(2, 3, 4) x (3, 4, 5)"},
                     [] { matmul(counting({2, 3, 4}), counting({3, 4, 5})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[matmul]", "rank 0"}, [] { matmul(counting({}), counting({1})); }));
}

}  // namespace
}  // namespace plugrad::test
