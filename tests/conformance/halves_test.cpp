// The largest errors of results in halves that pass, beyond the bound of the accumulator, in roundings of the result. A
// rounding is half a unit in the last place.
#include <sdk/conformance/op_rows.hpp>
#include <sdk/conformance/session.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace plugrad::conformance {
namespace {

// Ops whose parts may also be rounded to a half. Other tests below check their bounds.
bool rounds_parts(uint32_t opcode) {
  constexpr uint32_t kOpcodes[] = {PLUGRAD_OP_SCATTER_ADD, PLUGRAD_OP_SCATTER_SUM, PLUGRAD_OP_ATTENTION,
                                   PLUGRAD_OP_ATTENTION_BACKWARD};
  return std::ranges::count(kOpcodes, opcode) > 0;
}

// Ops whose results in halves ops.md defines, and whose results have the same dtype as the inputs.
bool computes_halves(const OpInfo& op, uint8_t dtype) {
  return op.is_for(dtype) && op.opcode != PLUGRAD_OP_CAST && op.opcode != PLUGRAD_OP_UNIFORM &&
         op.opcode != PLUGRAD_OP_NORMAL;
}

bool writes_halves(uint32_t opcode) { return question_for(opcode, PLUGRAD_F16).out() == PLUGRAD_F16; }

Array in_f32(const Array& array) {
  if (summed_in(array.dtype()) != PLUGRAD_F32) return array;
  Array wide(PLUGRAD_F32, array.shape());
  for (int64_t i = 0; i < array.count(); ++i) wide.set(i, array.get(i));
  return wide;
}
Problem in_f32(Problem problem) {
  for (Array& each : problem.outputs) each = in_f32(each);
  for (Array& each : problem.inputs) each = in_f32(each);
  return problem;
}

class Halves : public testing::TestWithParam<uint8_t> {
 protected:
  // Calls visit(expected half, expected f32, earlier value of the output) for the finite elements of each problem of an op.
  template <class Visit> void for_each_element(uint32_t opcode, uint32_t flags, Visit visit) {
    const Question half = question_for(opcode, GetParam(), flags), wide = question_for(opcode, PLUGRAD_F32, flags);
    const OpRow& row = row_of(opcode);
    Random random(1);
    for (Problem& problem : row.problems(half, random)) {
      if (problem.large) continue;
      if (flags) problem.outputs[0] = random_array(half.out(), problem.outputs[0].shape(), {-2, 2}, random);
      const Expectations narrow = expectations(row, half, problem), computed = expectations(row, wide, in_f32(problem));
      for (size_t k = 0; k < narrow.size(); ++k) {
        if (half.out(static_cast<int>(k)) != GetParam()) continue;
        for (size_t i = 0; i < narrow[k].elements.size(); ++i) {
          const Expected &a = narrow[k].elements[i], &b = computed[k].elements[i];
          const long double held = flags ? std::fabs(problem.outputs[0].get(static_cast<int64_t>(i))) : 0;
          if (!a.unspecified && !b.unspecified && std::isfinite(a.value) && std::isfinite(b.value)) visit(a, b, held);
        }
      }
    }
  }
  // Returns the smallest number of roundings, at most ten, such that no element passes with an error of the accumulator's
  // bound plus that many roundings.
  int refused_beyond(uint32_t opcode, uint32_t flags) {
    int most = 0, seen = 0;
    for_each_element(opcode, flags, [&](const Expected& half, const Expected& computed, long double held) {
      ++seen;
      const long double size = std::fabs(computed.value) + held + computed.bound;
      const long double rounding = ulp_bound(GetParam(), size, 0.5L);
      // The additional error of denormal numbers of f32.
      const long double underflow = 8 * limits_of(PLUGRAD_F32).smallest_denormal;
      const auto passes = [&](int roundings) {
        const long double off = computed.bound + (roundings + 0.001L) * rounding + underflow;
        return acceptable(GetParam(), computed.value + off, half) || acceptable(GetParam(), computed.value - off, half);
      };
      while (most < 10 && passes(most)) ++most;
    });
    EXPECT_TRUE(seen > 100 || !writes_halves(opcode)) << op_info(opcode)->name << ": " << seen << " elements";
    return most;
  }
};

TEST_P(Halves, NoResultIsOffByMoreThanOneRounding) {
  for (const OpInfo& op : kOps) {
    if (!computes_halves(op, GetParam()) || rounds_parts(op.opcode)) continue;
    EXPECT_LE(refused_beyond(op.opcode, 0), 1) << op.name << " " << dtype_label_of(GetParam());
  }
}

// First the result is rounded, then the sum; one of the two may round to the next power of 2.
TEST_P(Halves, NoSumWithTheOutputIsOffByMoreThanThreeRoundings) {
  for (const OpInfo& op : kOps) {
    const bool accumulates = op.outputs == 1 && !op.is_in_out(0);
    if (!computes_halves(op, GetParam()) || rounds_parts(op.opcode) || !accumulates) continue;
    EXPECT_LE(refused_beyond(op.opcode, PLUGRAD_ACCUMULATE), 3) << op.name << " " << dtype_label_of(GetParam());
  }
}

TEST_P(Halves, EachAdditionOfAScatterIsRounded) {
  Sum sum;
  for (const double term : {8.0, 1.0, -0.5}) sum.add(term);
  const long double rounding = limits_of(GetParam()).epsilon / 2;
  EXPECT_GT(sum.rounded_each(GetParam()).bound, 2 * rounding * 9.5L);
  EXPECT_LT(sum.rounded_each(GetParam()).bound, 2 * rounding * 9.5L * (1 + 2 * rounding));
}

TEST_P(Halves, AnAttentionToOneKeyIsOffByTwoRoundings) {
  for (const uint32_t opcode : {PLUGRAD_OP_ATTENTION, PLUGRAD_OP_ATTENTION_BACKWARD}) {
    const Question half = question_for(opcode, GetParam()), wide = question_for(opcode, PLUGRAD_F32);
    Random random(1);
    const Problem problem = row_of(opcode).problems(half, random).front();
    const size_t result = opcode == PLUGRAD_OP_ATTENTION ? 0 : 2;  // out, or the gradient of value
    const Expected e = expectations(row_of(opcode), half, problem)[result].elements[0];
    const Expected computed = expectations(row_of(opcode), wide, in_f32(problem))[result].elements[0];
    ASSERT_NE(e.value, 0);
    const long double roundings = (e.bound - computed.bound) / (limits_of(GetParam()).epsilon / 2 * std::fabs(e.value));
    EXPECT_LT(roundings, opcode == PLUGRAD_OP_ATTENTION ? 2.1L : 3.1L);
    EXPECT_GT(roundings, 0.5L);
  }
}

INSTANTIATE_TEST_SUITE_P(, Halves, testing::Values(PLUGRAD_F16, PLUGRAD_BF16),
                         [](const auto& info) { return std::string(dtype_label_of(info.param)); });

}  // namespace
}  // namespace plugrad::conformance
