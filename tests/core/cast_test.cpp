// Conversions between dtypes, value by value.
#include <tests/core/expect.hpp>

#include <cmath>
#include <limits>

namespace plugrad::test {
namespace {
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
using Integers = std::vector<int64_t>;
using Bytes = std::vector<uint8_t>;

TEST(Cast, FloatingToIntegerTruncatesAndSaturates) {
  const std::vector<double> values = {1.9, -1.9, 0.5, -0.5, 1e300, -1e300, kInf, -kInf, kNan, 9007199254740993.0};
  EXPECT_EQ(cast(f64(values), DType::i64).to_vector<int64_t>(),
            (Integers{1, -1, 0, 0, kMax, kMin, kMax, kMin, 0, 9007199254740992}));
  const std::vector<double> singles = {1.9, -1.9, 1e30, -1e30, kNan, 9.3e18, 16777217};
  EXPECT_EQ(cast(of(DType::f32, singles, {7}), DType::i64).to_vector<int64_t>(),
            (Integers{1, -1, kMax, kMin, 0, kMax, 16777216}));
}

TEST(Cast, DoubleToSingleRoundsToNearestEven) {
  const double up = 1 + 0x1p-24 + 0x1p-40, tie_down = 1 + 0x1p-24, tie_up = 1 + 3 * 0x1p-24;
  EXPECT_TRUE(close(cast(f64({up, tie_down, tie_up, 1e300, -1e300, 3.5e38, kNan, 1e-50}), DType::f32), {8},
                    {1 + 0x1p-23, 1, 1 + 0x1p-22, kInf, -kInf, kInf, kNan, 0}));
  EXPECT_TRUE(same_bits(elements(cast(f64({-0.0}), DType::f32)), {-0.0}));
}

TEST(Cast, IntegersToFloatingRoundToNearestEven) {
  const Tensor x = i64({16777217, 16777219, kMax, kMin, (int64_t(1) << 53) + 1, -3});
  EXPECT_TRUE(close(cast(x, DType::f32), {6}, {16777216, 16777220, 0x1p63, -0x1p63, 0x1p53, -3}));
  EXPECT_TRUE(close(cast(x, DType::f64), {6}, {16777217, 16777219, 0x1p63, -0x1p63, 0x1p53, -3}));
}

TEST(Cast, ToBoolIsNotZero) {
  EXPECT_EQ(cast(f64({0, -0.0, 0.1, kNan, -kInf, 5e-324}), DType::boolean).to_vector<uint8_t>(), (Bytes{0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(cast(of(DType::f32, {0, 0.1, kNan}, {3}), DType::boolean).to_vector<uint8_t>(), (Bytes{0, 1, 1}));
  EXPECT_EQ(cast(i64({0, 256, -1}), DType::boolean).to_vector<uint8_t>(), (Bytes{0, 1, 1}));
}

TEST(Cast, FromBoolIsZeroOrOne) {
  const Tensor x = of(DType::boolean, {1, 0, 1}, {3});
  for (DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64})
    EXPECT_TRUE(close(cast(x, dtype), {3}, {1, 0, 1})) << dtype;
}

TEST(Cast, EqualDtypesGiveTheTensorItself) {
  for (DType dtype : kRealDTypes) {
    const Tensor x = of(dtype, {0, 1}, {2});
    EXPECT_TRUE(cast(x, dtype).is_same(x));
  }
}

// Every pair of dtypes, for every layout of the operand.
TEST(Cast, StridedOperands) {
  for (DType from : {DType::f32, DType::f64, DType::i32, DType::i64})
    for (DType to : kRealDTypes) {
      const Tensor x = transpose(slice(counting({3, 4}, from), 1, 3, -5, -3));
      std::vector<double> expected = {3, 7, 11, 0, 4, 8};
      if (to == DType::boolean) expected = {1, 1, 1, 0, 1, 1};
      EXPECT_TRUE(close(cast(x, to), {2, 3}, expected)) << from << " to " << to;
      EXPECT_EQ(cast(x, to).dtype(), to);
    }
}

TEST(Cast, GradientsFlowBetweenFloatingDtypesOnly) {
  const Tensor x = f64({1.5, 2}).requires_grad_();
  const Tensor single = cast(x, DType::f32);
  const Tensor gradient = grad({sum(single * single)}, {x})[0];
  EXPECT_EQ(gradient.dtype(), DType::f64);
  EXPECT_TRUE(close(gradient, {2}, {3, 4}));
  EXPECT_FALSE(cast(x, DType::i64).requires_grad());
  EXPECT_FALSE(cast(x, DType::boolean).requires_grad());
}

}  // namespace
}  // namespace plugrad::test
