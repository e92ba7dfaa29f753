// Masks, triangles, the identity and one-hot codes.
#include <tests/core/expect.hpp>

namespace plugrad::test {
namespace {

TEST(Masks, MaskedFillBroadcastsBoth) {
  const Tensor mask = of(DType::boolean, {1, 0, 1}, {3});
  EXPECT_TRUE(close(masked_fill(counting({2, 3}), mask, -1), {2, 3}, {-1, 1, -1, -1, 4, -1}));
  EXPECT_TRUE(close(masked_fill(counting({2, 1}, DType::i64), mask, 7), {2, 3}, {7, 0, 7, 7, 1, 7}));
  EXPECT_TRUE(close(masked_fill(f64({5}, {}), of(DType::boolean, {1}, {}), 2), {}, {2}));
  EXPECT_TRUE(close(masked_fill(of(DType::boolean, {1, 1, 1}, {3}), mask, 0), {3}, {0, 1, 0}));
  EXPECT_TRUE(close(masked_fill(zeros({0, 3}), mask, 1), {0, 3}, {}));
  EXPECT_TRUE(throws(Code::invalid, {"[masked_fill]", "i64", "bool"}, [] { masked_fill(f64({1}), i64({1}), 0); }));
}

TEST(Masks, TrianglesOfEachDiagonal) {
  for (const Shape& shape : {Shape{3, 4}, Shape{2, 4, 3}, Shape{1, 1}, Shape{0, 3}})
    for (int64_t k = -4; k <= 4; ++k) {
      std::vector<double> lower, upper;
      for (const Shape& at : positions(shape)) {
        const double value = static_cast<double>(offset(at, shape) + 1);
        const int64_t row = at[at.size() - 2], column = at[at.size() - 1];
        lower.push_back(column - row <= k ? value : 0);
        upper.push_back(column - row >= k ? value : 0);
      }
      const Tensor x = counting(shape) + 1;
      EXPECT_TRUE(close(tril(x, k), shape, lower)) << shape << k;
      EXPECT_TRUE(close(triu(x, k), shape, upper)) << shape << k;
      EXPECT_TRUE(close(transpose(tril(transpose(x), -k)), shape, upper)) << shape << k;
    }
  EXPECT_TRUE(close(tril(ones({2, 2}, DType::boolean)), {2, 2}, {1, 0, 1, 1}));
  EXPECT_TRUE(throws(Code::invalid, {"[tril]", "(3,)"}, [] { tril(counting({3})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[triu]", "()"}, [] { triu(f64({1}, {})); }));
}

TEST(Masks, Identity) {
  EXPECT_TRUE(close(eye(2), {2, 2}, {1, 0, 0, 1}));
  EXPECT_TRUE(close(eye(2, 3, DType::i64), {2, 3}, {1, 0, 0, 0, 1, 0}));
  EXPECT_TRUE(close(eye(0), {0, 0}, {}));
  EXPECT_EQ(eye(2, -1, DType::boolean).dtype(), DType::boolean);
  EXPECT_TRUE(throws(Code::invalid, {"[eye]", "-2"}, [] { eye(-2); }));
}

TEST(Masks, OneHotOfAnyShape) {
  EXPECT_TRUE(close(one_hot(i64({2, 0}), 3), {2, 3}, {0, 0, 1, 1, 0, 0}));
  EXPECT_TRUE(close(one_hot(transpose(i64({0, 1, 1, 0}, {2, 2})), 2), {2, 2, 2}, {1, 0, 0, 1, 0, 1, 1, 0}));
  EXPECT_TRUE(close(one_hot(i64({1}, {}), 2), {2}, {0, 1}));
  EXPECT_TRUE(close(one_hot(zeros({0}, DType::i64), 2), {0, 2}, {}));
  EXPECT_EQ(one_hot(i64({0}), 1).dtype(), DType::i64);
  EXPECT_TRUE(throws(Code::index_error, {"scatter"}, [] { elements(one_hot(i64({0, 3}), 3)); }));
  EXPECT_TRUE(throws(Code::invalid, {"[one_hot]", "f64", "an integer dtype"}, [] { one_hot(f64({0}), 3); }));
  EXPECT_TRUE(throws(Code::invalid, {"[one_hot]", "num_classes"}, [] { one_hot(i64({0}), 0); }));
}

}  // namespace
}  // namespace plugrad::test
