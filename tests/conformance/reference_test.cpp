// Compares the conformance suite's own references with published or exact values.
#include <sdk/conformance/op_rows.hpp>
#include <sdk/conformance/philox.hpp>
#include <sdk/conformance/session.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace plugrad::conformance {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Bounds, UlpIsThatOfTheResult) {
  EXPECT_EQ(ulp_bound(PLUGRAD_F32, 1.0L, 1), 0x1p-23L);
  EXPECT_EQ(ulp_bound(PLUGRAD_F32, 1.999L, 2), 0x1p-22L);
  EXPECT_EQ(ulp_bound(PLUGRAD_F32, 2.0L, 1), 0x1p-22L);
  EXPECT_EQ(ulp_bound(PLUGRAD_F64, -0.75L, 1), 0x1p-53L);
  EXPECT_EQ(ulp_bound(PLUGRAD_F32, 1e-45L, 1), 0x1p-149L);
}

TEST(Bounds, ExactMeansTheSignOfZeroToo) {
  EXPECT_TRUE(acceptable(PLUGRAD_F32, 0.0L, {0.0L}));
  EXPECT_FALSE(acceptable(PLUGRAD_F32, -0.0L, {0.0L}));
  EXPECT_TRUE(acceptable(PLUGRAD_F32, -0.0L, {0.0L, 0, true}));
  EXPECT_FALSE(acceptable(PLUGRAD_F32, kNaN, {0.0L}));
  EXPECT_TRUE(acceptable(PLUGRAD_F32, kNaN, {kNaN}));
  EXPECT_FALSE(acceptable(PLUGRAD_F32, 1.0L, {kNaN}));
}

TEST(Bounds, InfinityOnlyWhereTheBoundReachesIt) {
  const long double largest = std::numeric_limits<float>::max();
  EXPECT_TRUE(acceptable(PLUGRAD_F32, kInfinity, {largest, ulp_bound(PLUGRAD_F32, largest, 4)}));
  EXPECT_FALSE(acceptable(PLUGRAD_F32, -kInfinity, {largest, ulp_bound(PLUGRAD_F32, largest, 4)}));
  EXPECT_FALSE(acceptable(PLUGRAD_F32, kInfinity, {largest / 2, ulp_bound(PLUGRAD_F32, largest / 2, 4)}));
  EXPECT_FALSE(acceptable(PLUGRAD_F32, largest, {kInfinity, 1}));
}

TEST(Bounds, FiveUlpsOffIsRefusedWhereFourAreAllowed) {
  const long double bound = ulp_bound(PLUGRAD_F32, 1.5L, 4);
  EXPECT_TRUE(acceptable(PLUGRAD_F32, 1.5L + 4 * 0x1p-23L, {1.5L, bound}));
  EXPECT_FALSE(acceptable(PLUGRAD_F32, 1.5L + 5 * 0x1p-23L, {1.5L, bound}));
}

TEST(Bounds, AFlushedResultIsZeroUpToTheSmallestNormalNumber) {
  constexpr long double kNormal = 0x1p-126L;
  EXPECT_TRUE(acceptable_if_flushed(PLUGRAD_F32, 0, {kNormal / 2}, 4));
  EXPECT_TRUE(acceptable_if_flushed(PLUGRAD_F32, 0, {kNormal}, 4)) << "which rounding may have made of a denormal number";
  EXPECT_FALSE(acceptable_if_flushed(PLUGRAD_F32, 0, {kNormal * (1 + 0x1p-23L)}, 4));
  EXPECT_FALSE(acceptable_if_flushed(PLUGRAD_F32, kNormal / 4, {kNormal / 2}, 4));
}

TEST(Bounds, AFlushedExponentialCountsTimesItsFactor) {
  constexpr long double kNormal = 0x1p-126L;
  Expected expected{-80 * kNormal, 0x1p-149L, true};
  EXPECT_FALSE(acceptable_if_flushed(PLUGRAD_F32, 0, expected, 4));
  expected.exponentials = 89;
  EXPECT_TRUE(acceptable_if_flushed(PLUGRAD_F32, 0, expected, 4));
  EXPECT_FALSE(acceptable_if_flushed(PLUGRAD_F32, 200 * kNormal, expected, 4));
  EXPECT_FALSE(acceptable_if_flushed(PLUGRAD_F32, kNaN, expected, 4));
  expected.exponentials = kInfinity;
  EXPECT_TRUE(acceptable_if_flushed(PLUGRAD_F32, kNaN, expected, 4)) << "infinity times 0";
}

TEST(Sums, KeepWhatDoubleLoses) {
  Sum sum;
  for (const double term : {1e16, 1.0, -1e16, 1.0}) sum.add(term);
  EXPECT_EQ(sum.value(), 2.0L);
  Sum product;
  product.add_product(1 + 0x1p-30, 1 + 0x1p-30);
  product.add(-1);
  EXPECT_EQ(product.value(), 0x1p-29L + 0x1p-60L);
}

TEST(Sums, FollowInfinitiesAndNaN) {
  Sum plus, both, nan;
  plus.add(kInfinity);
  plus.add(-1);
  both.add(kInfinity);
  both.add(-kInfinity);
  nan.add_product(0, kInfinity);
  EXPECT_EQ(plus.value(), kInfinity);
  EXPECT_TRUE(std::isnan(both.value()));
  EXPECT_TRUE(std::isnan(nan.value()));
}

// Runs an op's reference on one problem.
std::vector<Expected> solved(uint32_t opcode, std::vector<uint8_t> dtypes, std::vector<std::vector<long double>> inputs,
                             Shape out_shape, const plugrad_axis* axis = nullptr) {
  const Question question{op_info(opcode), dtypes, 0};
  Problem problem;
  problem.outputs.emplace_back(dtypes[0], out_shape);
  for (size_t k = 0; k < inputs.size(); ++k) {
    problem.inputs.emplace_back(dtypes[1 + k], Shape{static_cast<int64_t>(inputs[k].size())});
    for (size_t i = 0; i < inputs[k].size(); ++i) problem.inputs.back().set(i, inputs[k][i]);
  }
  if (axis) problem.set_attributes(*axis);
  return expectations(row_of(opcode), question, problem)[0].elements;
}

// An array without values is full of NaN, with which every result passes.
TEST(References, EveryInputOfEveryProblemHasValues) {
  for (const OpInfo& op : kOps) {
    if (!op.is_for(PLUGRAD_F32)) continue;
    const Question question = question_for(op.opcode, PLUGRAD_F32);
    if (op.operands[op.outputs] == 'D') continue;  // the source of a cast has any dtype
    Random random(1);
    for (const Problem& problem : row_of(op.opcode).problems(question, random))
      for (const Array& input : problem.inputs) {
        const auto& bytes = input.bytes();
        const bool blank = std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0xFF}; });
        EXPECT_FALSE(blank && is_floating(input.dtype())) << op.name << " " << text_of(input.shape());
      }
  }
}

TEST(References, CastSaturatesAndWraps) {
  const auto to_i64 =
      solved(PLUGRAD_OP_CAST, {PLUGRAD_I64, PLUGRAD_F32}, {{kNaN, 0x1p70L, -kInfinity, -2.9L, kInfinity}}, {5});
  const long double expected[] = {0, 0x1p63L - 1, -0x1p63L, -2, 0x1p63L - 1};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(to_i64[i].value, expected[i]);
  EXPECT_EQ(solved(PLUGRAD_OP_CAST, {PLUGRAD_F32, PLUGRAD_I64}, {{16777217}}, {1})[0].value, 16777216);
  EXPECT_EQ(solved(PLUGRAD_OP_CAST, {PLUGRAD_BOOL, PLUGRAD_F32}, {{kNaN}}, {1})[0].value, 1);
}

TEST(References, PowFollowsC) {
  const auto at = [](long double a, long double b) {
    return solved(PLUGRAD_OP_POW, {PLUGRAD_F64, PLUGRAD_F64, PLUGRAD_F64}, {{a}, {b}}, {1})[0].value;
  };
  EXPECT_EQ(at(kNaN, 0), 1);
  EXPECT_EQ(at(1, kNaN), 1);
  EXPECT_TRUE(std::isnan(at(-2, 0.5L)));
  EXPECT_EQ(at(-0.0L, -3), -kInfinity);
  EXPECT_EQ(at(-kInfinity, -0x1p63L), 0);
}

TEST(References, ReductionsTakeTheFirstNaN) {
  EXPECT_EQ(solved(PLUGRAD_OP_ARGMAX, {PLUGRAD_I64, PLUGRAD_F32}, {{1, 5, 5, 2}}, {1})[0].value, 1);
  EXPECT_EQ(solved(PLUGRAD_OP_ARGMAX, {PLUGRAD_I64, PLUGRAD_F32}, {{1, kNaN, kInfinity, kNaN}}, {1})[0].value, 1);
  EXPECT_TRUE(std::isnan(solved(PLUGRAD_OP_MAX, {PLUGRAD_F32, PLUGRAD_F32}, {{1, kNaN, 2}}, {1})[0].value));
}

TEST(References, LogSoftmaxOfEqualLogits) {
  const plugrad_axis axis{sizeof axis, 0};
  const auto y = solved(PLUGRAD_OP_LOG_SOFTMAX, {PLUGRAD_F64, PLUGRAD_F64}, {{3, 3, 3, 3}}, {4}, &axis);
  EXPECT_NEAR(static_cast<double>(y[2].value), -1.3862943611198906, 1e-16);
  EXPECT_TRUE(std::isnan(solved(PLUGRAD_OP_LOG_SOFTMAX, {PLUGRAD_F64, PLUGRAD_F64}, {{3, kInfinity}}, {2}, &axis)[0].value));
}

TEST(References, ArgsortIsStableAndPutsNaNLast) {
  const Question question{op_info(PLUGRAD_OP_ARGSORT), {PLUGRAD_I64, PLUGRAD_F32}, 0};
  const auto indices = [&](uint32_t descending) {
    Problem problem;
    problem.outputs.emplace_back(PLUGRAD_I64, Shape{7});
    problem.inputs.emplace_back(PLUGRAD_F32, Shape{7});
    const long double values[] = {2, kNaN, 0, -kInfinity, -0.0L, kNaN, 2};
    for (int i = 0; i < 7; ++i) problem.inputs[0].set(i, values[i]);
    problem.set_attributes(plugrad_sort{sizeof(plugrad_sort), 0, descending});
    std::vector<int64_t> order;
    const auto expected = expectations(row_of(PLUGRAD_OP_ARGSORT), question, problem);
    for (const Expected& e : expected[0].elements) order.push_back(static_cast<int64_t>(e.value));
    return order;
  };
  EXPECT_EQ(indices(0), (std::vector<int64_t>{3, 2, 4, 0, 6, 1, 5}));
  EXPECT_EQ(indices(1), (std::vector<int64_t>{1, 5, 0, 6, 2, 4, 3}));
}

// A problem with these operands, outputs first.
using Values = std::pair<Shape, std::vector<long double>>;
Problem problem_of(const std::vector<Array>& outputs, const std::vector<Values>& inputs) {
  Problem problem;
  problem.outputs = outputs;
  for (const auto& [shape, values] : inputs) {
    problem.inputs.emplace_back(PLUGRAD_F64, shape);
    for (size_t i = 0; i < values.size(); ++i) problem.inputs.back().set(static_cast<int64_t>(i), values[i]);
  }
  return problem;
}
std::vector<double> values_of(const Expectation& expectation) {
  std::vector<double> values;
  for (const Expected& e : expectation.elements) values.push_back(static_cast<double>(e.value));
  return values;
}

TEST(References, ConvolutionsSumWindows) {
  const auto solve = [](uint32_t opcode, const Shape& out, Problem problem) {
    problem.set_attributes(plugrad_convolution{sizeof(plugrad_convolution), 0, 1, {2, 0, 0}, {1, 0, 0}, {1, 0, 0}});
    problem.outputs = {Array(PLUGRAD_F64, out)};
    const size_t operands = problem.inputs.size() + 1;
    const Question question{op_info(opcode), std::vector<uint8_t>(operands, PLUGRAD_F64), 0};
    return values_of(expectations(row_of(opcode), question, problem)[0]);
  };
  const Values x{{1, 1, 4}, {1, 2, 3, 4}}, w{{1, 1, 3}, {1, 10, 100}}, grad{{1, 1, 2}, {1, 5}}, bias{{1}, {7}};
  EXPECT_EQ(solve(PLUGRAD_OP_CONVOLUTION, {1, 1, 2}, problem_of({}, {x, w})), (std::vector<double>{210, 432}));
  EXPECT_EQ(solve(PLUGRAD_OP_CONVOLUTION_BIAS, {1, 1, 2}, problem_of({}, {x, w, bias})), (std::vector<double>{217, 439}));
  EXPECT_EQ(solve(PLUGRAD_OP_CONVOLUTION_INPUT_GRAD, {1, 1, 4}, problem_of({}, {grad, w})),
            (std::vector<double>{10, 105, 50, 500}));
  EXPECT_EQ(solve(PLUGRAD_OP_CONVOLUTION_WEIGHT_GRAD, {1, 1, 3}, problem_of({}, {grad, x})),
            (std::vector<double>{10, 16, 22}));
}

TEST(References, PoolingTakesTheFirstOfEqualElements) {
  Problem problem =
      problem_of({Array(PLUGRAD_F64, {1, 1, 3}), Array(PLUGRAD_I64, {1, 1, 3})}, {{{1, 1, 5}, {2, 2, kNaN, 3, kNaN}}});
  problem.set_attributes(plugrad_pool{sizeof(plugrad_pool), 0, {3, 0, 0}, {2, 0, 0}, {1, 0, 0}, {1, 0, 0}});
  const Question question{op_info(PLUGRAD_OP_MAX_POOL), {PLUGRAD_F64, PLUGRAD_I64, PLUGRAD_F64}, 0};
  const Expectations expected = expectations(row_of(PLUGRAD_OP_MAX_POOL), question, problem);
  EXPECT_EQ(values_of(expected[1]), (std::vector<double>{0, 2, 4}));
  EXPECT_EQ(values_of(expected[0])[0], 2);
  EXPECT_TRUE(std::isnan(values_of(expected[0])[1]));
}

TEST(References, CumsumAddsFromEitherEnd) {
  const auto sums = [](uint32_t reverse) {
    const Question question{op_info(PLUGRAD_OP_CUMSUM), {PLUGRAD_F64, PLUGRAD_F64}, 0};
    Problem problem = problem_of({Array(PLUGRAD_F64, {3})}, {{{3}, {1, 2, 3}}});
    problem.set_attributes(plugrad_scan{sizeof(plugrad_scan), 0, reverse});
    return values_of(expectations(row_of(PLUGRAD_OP_CUMSUM), question, problem)[0]);
  };
  EXPECT_EQ(sums(0), (std::vector<double>{1, 3, 6}));
  EXPECT_EQ(sums(1), (std::vector<double>{6, 5, 3}));
}

TEST(References, UniformIsTheTopOfAWord) {
  const auto u = solved(PLUGRAD_OP_UNIFORM, {PLUGRAD_F32, PLUGRAD_I64, PLUGRAD_I64}, {{0}, {0}}, {2});
  EXPECT_EQ(u[0].value, (0x6627e8d5 >> 8) * 0x1p-24L);
  EXPECT_EQ(u[1].value, (0xe169c58d >> 8) * 0x1p-24L);
}

}  // namespace
}  // namespace plugrad::conformance
