// Operands of two dtypes, and numbers with integer and bool tensors.
#include <tests/core/expect.hpp>

#include <cmath>

namespace plugrad::test {
namespace {
constexpr DType B = DType::boolean, U8 = DType::u8, I8 = DType::i8, I16 = DType::i16, I32 = DType::i32, I64 = DType::i64,
                F16 = DType::f16, BF16 = DType::bf16, F32 = DType::f32, F64 = DType::f64;

// The array API standard's tables (2024.12, "Type promotion rules"). PyTorch's rules fill the entries that the standard
// omits.
constexpr DType kTypes[] = {B, U8, I8, I16, I32, I64, F16, BF16, F32, F64};
constexpr DType kTable[10][10] = {
    {B, U8, I8, I16, I32, I64, F16, BF16, F32, F64},     {U8, U8, I16, I16, I32, I64, F16, BF16, F32, F64},
    {I8, I16, I8, I16, I32, I64, F16, BF16, F32, F64},   {I16, I16, I16, I16, I32, I64, F16, BF16, F32, F64},
    {I32, I32, I32, I32, I32, I64, F16, BF16, F32, F64}, {I64, I64, I64, I64, I64, I64, F16, BF16, F32, F64},
    {F16, F16, F16, F16, F16, F16, F16, F32, F32, F64},  {BF16, BF16, BF16, BF16, BF16, BF16, F32, BF16, F32, F64},
    {F32, F32, F32, F32, F32, F32, F32, F32, F32, F64},  {F64, F64, F64, F64, F64, F64, F64, F64, F64, F64},
};

TEST(Promotion, OperandsTakeTheDtypeOfTheTable) {
  for (int i = 0; i < 10; ++i)
    for (int j = 0; j < 10; ++j) {
      const Tensor a = of(kTypes[i], {1, 0}, {2}), b = of(kTypes[j], {1, 1}, {2});
      EXPECT_EQ(promote_types(kTypes[i], kTypes[j]), kTable[i][j]);
      EXPECT_EQ((a + b).dtype(), kTable[i][j]) << kTypes[i] << " + " << kTypes[j];
      EXPECT_TRUE(close(a * b, {2}, {1, 0})) << kTypes[i] << " * " << kTypes[j];
      EXPECT_TRUE(close(lt(a, b), {2}, {0, 1})) << kTypes[i] << " < " << kTypes[j];
      EXPECT_TRUE(close(ge(a, b), {2}, {1, 0})) << kTypes[i] << " >= " << kTypes[j];
      EXPECT_EQ(where(of(B, {1, 0}, {2}), a, b).dtype(), kTable[i][j]);
      EXPECT_EQ(cat({a, b}).dtype(), kTable[i][j]);
    }
}

TEST(Promotion, NumbersAreWeak) {
  struct Row {
    DType tensor, whole, fraction;
  };
  constexpr Row kRows[] = {{B, I64, F32},   {U8, U8, F32},      {I64, I64, F32},
                           {F16, F16, F16}, {BF16, BF16, BF16}, {F64, F64, F64}};
  for (const Row& row : kRows) {
    const Tensor x = of(row.tensor, {1, 0}, {2});
    EXPECT_EQ((x + 1).dtype(), row.whole) << row.tensor;
    EXPECT_EQ((x + 0.5).dtype(), row.fraction) << row.tensor;
    EXPECT_TRUE(close(x + 0.5, {2}, {1.5, 0.5})) << row.tensor;
    EXPECT_TRUE(close(0.5 - x, {2}, {-0.5, 0.5})) << row.tensor;
    EXPECT_TRUE(close(maximum(x, 0.5), {2}, {1, 0.5})) << row.tensor;
    EXPECT_TRUE(close(lt(x, 0.5), {2}, {0, 1})) << row.tensor;
    EXPECT_TRUE(close(eq(x, 2), {2}, {0, 0})) << row.tensor;
  }
  EXPECT_EQ((of(F64, {1}, {1}) + 0.1).item<double>(), 1.1);
}

TEST(Promotion, FloatingResultsOfIntegersAreF32) {
  const Tensor x = i64({1, 4, 9});
  EXPECT_EQ((x / 2).dtype(), F32);
  EXPECT_TRUE(close(x / 2, {3}, {0.5, 2, 4.5}));
  EXPECT_TRUE(close(x / i64({2, 8, 3}), {3}, {0.5, 0.5, 3}));
  EXPECT_TRUE(close(2 / i64({4, 1}), {2}, {0.5, 2}));
  EXPECT_TRUE(close(sqrt(x), {3}, {1, 2, 3}));
  EXPECT_EQ(exp(of(B, {1, 0}, {2})).dtype(), F32);
  EXPECT_TRUE(close(sigmoid(i64({0})), {1}, {0.5}));
  EXPECT_EQ(mean(x).dtype(), F32);
  EXPECT_NEAR(mean(x).item<double>(), 14.0 / 3, 1e-6);
  EXPECT_EQ(mean(eq(x, 4)).item<float>(), 1.0f / 3);
  EXPECT_EQ(relu(i64({-1, 2})).dtype(), I64);
  EXPECT_EQ(square(of(B, {1, 0}, {2})).to_vector<int64_t>(), (std::vector<int64_t>{1, 0}));
  EXPECT_TRUE(throws(Code::invalid, {"[relu]", "bool", "numbers"}, [] { relu(of(B, {1, 0}, {2})); }));
}

TEST(Promotion, IntegerPowersStayIntegers) {
  EXPECT_EQ(pow(i64({3, -2}), 13).to_vector<int64_t>(), (std::vector<int64_t>{1594323, -8192}));
  EXPECT_EQ(pow(i64({7}), 0).to_vector<int64_t>(), (std::vector<int64_t>{1}));
  EXPECT_TRUE(close(pow(of(U8, {3, 2}, {2}), 6), {2}, {729 - 512, 64}));
  EXPECT_TRUE(close(pow(i64({4}), 0.5), {1}, {2}));
  EXPECT_TRUE(close(pow(i64({4}), of(F32, {-1}, {1})), {1}, {0.25}));
  EXPECT_TRUE(throws(Code::invalid, {"[pow]", "power -1", "cast"}, [] { pow(i64({4}), -1); }));
}

TEST(Promotion, BoolsAddAsOrAndMultiplyAsAnd) {
  const Tensor a = of(B, {0, 0, 1, 1}, {4}), b = of(B, {0, 1, 0, 1}, {4});
  struct Row {
    Tensor (*apply)(const Tensor& a, const Tensor& b);
    std::vector<double> expected;
  };
  for (const Row& row : {Row{add, {0, 1, 1, 1}}, {maximum, {0, 1, 1, 1}}, {mul, {0, 0, 0, 1}}, {minimum, {0, 0, 0, 1}}}) {
    EXPECT_EQ(row.apply(a, b).dtype(), B);
    EXPECT_TRUE(close(row.apply(a, b), {4}, row.expected));
  }
  EXPECT_TRUE(throws(Code::invalid, {"[sub]", "bool", "ne"}, [&] { sub(a, b); }));
  EXPECT_EQ(max(a).item<bool>(), true);
  EXPECT_EQ(min(a).item<bool>(), false);
  EXPECT_EQ(argmax(a).item<int64_t>(), 2);
}

TEST(Promotion, GradientsComeBackInTheDtypeOfTheirLeaf) {
  Tensor x = of(F32, {1, 2}, {2}), y = of(F64, {3, 5}, {2});
  x.requires_grad_();
  y.requires_grad_();
  sum(x * y * i64({2, 4})).backward();
  EXPECT_EQ(x.grad().dtype(), F32);
  EXPECT_TRUE(close(x.grad(), {2}, {6, 20}));
  EXPECT_EQ(y.grad().dtype(), F64);
  EXPECT_TRUE(close(y.grad(), {2}, {2, 8}));
}

TEST(Promotion, ProductsOfIntegersAreExact) {
  const Tensor a = i64({1, 2, 3, 4, 5, 6}, {2, 3}), b = i64({1, 0, 0, 1, 1 << 20, 2}, {3, 2});
  EXPECT_EQ(matmul(a, b).to_vector<int64_t>(), (std::vector<int64_t>{1 + 3 * (1 << 20), 8, 4 + 6 * (1 << 20), 17}));
  EXPECT_EQ(matmul(cast(a, I32), b).dtype(), I64);
  EXPECT_EQ(matmul(a, cast(b, F32)).dtype(), F32);
  EXPECT_EQ(matmul(i64({1, 2}), i64({3, 4})).item<int64_t>(), 11);
  EXPECT_EQ(matmul(zeros({2, 0}, I64), zeros({0, 3}, I64)).shape(), Shape({2, 3}));
  EXPECT_EQ(matmul(of(B, {1, 0}, {1, 2}), of(B, {0, 1}, {2, 1})).item<bool>(), false);
}

TEST(Promotion, MeansOfHalvesDoNotOverflow) { EXPECT_EQ(mean(full({4}, 60000, F16)).item<float>(), 60000.0f); }

TEST(Promotion, IndicesAndTargetsOfAnyInteger) {
  for (DType dtype : {U8, I8, I16, I32, I64}) {
    const Tensor x = f64({10, 20, 30}), index = of(dtype, {2, 0}, {2});
    EXPECT_TRUE(close(gather(x, 0, index), {2}, {30, 10})) << dtype;
    EXPECT_TRUE(close(scatter_add(x, 0, index, f64({1, 2})), {3}, {12, 20, 31})) << dtype;
    EXPECT_NEAR(cross_entropy(zeros({2, 3}, F64), index).item<double>(), std::log(3.0), 1e-12) << dtype;
  }
}

TEST(Promotion, TermsInPlaceAreScaledInTheWiderDtype) {
  for (const DType narrow : {U8, I8, B}) {
    Tensor x = of(I16, {0, 500}, {2});
    x.add_(of(narrow, {1, 0}, {2}), -300);
    EXPECT_TRUE(close(x, {2}, {-300, 500})) << narrow;
  }
}

TEST(Promotion, InPlaceAdditionKeepsItsDtype) {
  Tensor x = i64({1, 2});
  x.add_(of(U8, {3, 4}, {2}));
  EXPECT_EQ(x.to_vector<int64_t>(), (std::vector<int64_t>{4, 6}));
  EXPECT_TRUE(throws(Code::invalid, {"[add_]", "f64", "i64"}, [&] { x.add_(f64({0.5, 0.5})); }));
  Tensor y = of(F32, {1, 2}, {2});
  y.add_(f64({0.5, 0.5}));
  EXPECT_EQ(y.dtype(), F32);
  EXPECT_TRUE(close(y, {2}, {1.5, 2.5}));
}

}  // namespace
}  // namespace plugrad::test
