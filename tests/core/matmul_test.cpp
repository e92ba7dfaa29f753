// Products of matrices, vectors and batches against three nested loops.
#include <tests/core/expect.hpp>

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
      total += a[size_t(offset(left, a_shape))] * b[size_t(offset(right, b_shape))];
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

TEST(Matmul, BadShapesAreNamed) {
  EXPECT_TRUE(throws(Code::invalid, {"[matmul]", "inner", "(3, 4) x (5, 6)"}, [] {
    matmul(counting({3, 4}), counting({5, 6}));
  }));
  EXPECT_TRUE(throws(Code::invalid, {"[matmul]", "(3,) x (4,)"}, [] { matmul(counting({3}), counting({4})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[matmul]", "batch", "(2, 3, 4) x (3, 4, 5)"}, [] {
    matmul(counting({2, 3, 4}), counting({3, 4, 5}));
  }));
  EXPECT_TRUE(throws(Code::invalid, {"[matmul]", "rank 0"}, [] { matmul(counting({}), counting({1})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[matmul]", "i64", "a floating dtype"}, [] {
    matmul(counting({2, 2}, DType::i64), counting({2, 2}, DType::i64));
  }));
  EXPECT_TRUE(throws(Code::invalid, {"[matmul]", "f64", "f32"}, [] {
    matmul(counting({2, 2}), counting({2, 2}, DType::f32));
  }));
}

}  // namespace
}  // namespace plugrad::test
