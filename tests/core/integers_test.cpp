// Division with integer quotients, and bits of integers.
#include <tests/core/expect.hpp>

#include <cmath>
#include <cstdint>
#include <limits>

namespace plugrad::test {
namespace {
constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
using Integers = std::vector<int64_t>;
using Binary = Tensor (*)(const Tensor& a, const Tensor& b);

// The tests use every pair of these numbers.
const Integers kNumbers = {0, 1, -1, 2, -2, 3, 7, -7, 10, 63, 64, -63, 255, -256, kMost, kLeast, kMost - 1, kLeast + 1};

int64_t truncated_rest(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
int64_t floored(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return a == kLeast ? a : -a;
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
int64_t remaining(int64_t a, int64_t b) {
  const int64_t rest = truncated_rest(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
int64_t shifted_left(int64_t a, int64_t b) {
  return b >= 0 && b < 64 ? static_cast<int64_t>(static_cast<uint64_t>(a) << b) : 0;
}
int64_t shifted_right(int64_t a, int64_t b) { return a >> (b >= 0 && b < 64 ? b : 63); }

struct Row {
  const char* name;
  Binary apply;
  int64_t (*expected)(int64_t a, int64_t b);
};
const Row kRows[] = {
    {"floor_divide", floor_divide, floored},
    {"remainder", remainder, remaining},
    {"fmod", fmod, truncated_rest},
    {"bitwise_and", bitwise_and, [](int64_t a, int64_t b) { return a & b; }},
    {"bitwise_or", bitwise_or, [](int64_t a, int64_t b) { return a | b; }},
    {"bitwise_xor", bitwise_xor, [](int64_t a, int64_t b) { return a ^ b; }},
    {"bitwise_left_shift", bitwise_left_shift, shifted_left},
    {"bitwise_right_shift", bitwise_right_shift, shifted_right},
};

TEST(Integers, EveryPairOfLargeAndSmallNumbers) {
  const int64_t n = static_cast<int64_t>(kNumbers.size());
  const Tensor column = reshape(i64(kNumbers), {n, 1}), row = i64(kNumbers);
  for (const Row& each : kRows) {
    Integers expected;
    for (const int64_t a : kNumbers)
      for (const int64_t b : kNumbers) expected.push_back(each.expected(a, b));
    const Tensor result = each.apply(column, row);
    EXPECT_EQ(result.dtype(), DType::i64);
    EXPECT_EQ(result.to_vector<int64_t>(), expected) << each.name;
  }
}

TEST(Integers, NarrowOnesWrapInTheirOwnDtype) {
  EXPECT_TRUE(close(bitwise_left_shift(of(DType::u8, {3, 200, 1}, {3}), of(DType::u8, {7, 1, 8}, {3})), {3}, {128, 144, 0}));
  EXPECT_TRUE(close(bitwise_right_shift(of(DType::i8, {-128, 5}, {2}), of(DType::i8, {7, 1}, {2})), {2}, {-1, 2}));
  EXPECT_TRUE(close(floor_divide(of(DType::i8, {-128, -7}, {2}), of(DType::i8, {-1, 2}, {2})), {2}, {-128, -4}));
  EXPECT_TRUE(close(bitwise_not(of(DType::u8, {0, 255}, {2})), {2}, {255, 0}));
  EXPECT_TRUE(close(bitwise_not(i64({0, -1, 5})), {3}, {-1, 0, -6}));
  EXPECT_TRUE(close(remainder(of(DType::i32, {-7}, {1}), 3), {1}, {2}));
}

TEST(Integers, BitsOfBoolsAreLogical) {
  const Tensor a = Tensor::from(std::vector<bool>{false, true}, {2}), b = Tensor::from(std::vector<bool>{true, true}, {2});
  for (const auto& [apply, expected] :
       {std::pair<Binary, std::vector<double>>{bitwise_and, {0, 1}}, {bitwise_or, {1, 1}}, {bitwise_xor, {1, 0}}}) {
    EXPECT_EQ(apply(a, b).dtype(), DType::boolean);
    EXPECT_TRUE(close(apply(a, b), {2}, expected));
  }
  EXPECT_TRUE(close(bitwise_not(a), {2}, {1, 0}));
  EXPECT_EQ(bitwise_left_shift(a, b).dtype(), DType::i64);
}

TEST(Integers, PromotionAndErrors) {
  EXPECT_EQ(bitwise_and(i64({6}), of(DType::u8, {3}, {1})).dtype(), DType::i64);
  EXPECT_EQ(floor_divide(i64({7}), 2.0).dtype(), DType::f32);
  EXPECT_TRUE(close(floor_divide(7, i64({2, -2})), {2}, {3, -4}));
  EXPECT_TRUE(throws(Code::invalid, {"[bitwise_or]", "f64", "integer"}, [] { bitwise_or(f64({1}), f64({1})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[bitwise_not]", "f64"}, [] { bitwise_not(f64({1})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[bitwise_left_shift]", "f64"}, [] { bitwise_left_shift(f64({1}), 1); }));
}

TEST(Integers, PowersOfTensors) {
  EXPECT_EQ(pow(i64({2, -3, 0, 5}), i64({62, 3, 0, 1})).to_vector<int64_t>(), (Integers{int64_t{1} << 62, -27, 1, 5}));
  EXPECT_EQ(pow(2, i64({0, 1, 10})).to_vector<int64_t>(), (Integers{1, 2, 1024}));
  EXPECT_EQ(pow(i64({3}), i64({41})).to_vector<int64_t>(), (Integers{static_cast<int64_t>(18026252303461234787u)}));
  EXPECT_EQ(pow(zeros({0}, DType::i64), i64({2})).shape(), Shape({0}));
  EXPECT_TRUE(throws(Code::invalid, {"[pow]", "negative power", "cast"}, [] { pow(i64({4}), i64({2, -1})); }));
}

// --- Floating numbers. Results of PyTorch 2.15 on the CPU.

struct Pair {
  double a, b, floor, remainder, fmod;
};
const Pair kPairs[] = {
    {7, 2, 3, 1, 1},
    {-7, 2, -4, 1, -1},
    {7, -2, -4, -1, 1},
    {-7, -2, 3, -1, -1},
    {6, 3, 2, 0, 0},
    {-6, 3, -2, -0.0, -0.0},
    {0, 5, 0, 0, 0},
    {-0.0, 5, -0.0, -0.0, -0.0},
    {5, kInf, 0, 5, 5},
    {-5, kInf, -1, kInf, -5},
    {kInf, 5, kNan, kNan, kNan},
    {5, 0, kInf, kNan, kNan},
    {-5, 0, -kInf, kNan, kNan},
    {0, 0, kNan, kNan, kNan},
    {kNan, 1, kNan, kNan, kNan},
    {1e300, 3, 3.3333333333333335e299, 0, 0},
    {0.5, 0.25, 2, 0, 0},
    {1, 0.1, 9, 0.09999999999999995, 0.09999999999999995},
};

TEST(Integers, RealNumbers) {
  std::vector<double> a, b, floors, remainders, rests;
  for (const Pair& each : kPairs) {
    a.push_back(each.a), b.push_back(each.b);
    floors.push_back(each.floor), remainders.push_back(each.remainder), rests.push_back(each.fmod);
  }
  const int64_t n = static_cast<int64_t>(a.size());
  EXPECT_TRUE(close(floor_divide(f64(a), f64(b)), {n}, floors, 1e-15));
  EXPECT_TRUE(close(remainder(f64(a), f64(b)), {n}, remainders, 1e-15));
  EXPECT_TRUE(close(fmod(f64(a), f64(b)), {n}, rests, 1e-15));
}

}  // namespace
}  // namespace plugrad::test
