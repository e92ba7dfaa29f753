#include <sdk/conformance/op_rows.hpp>
#include <sdk/conformance/philox.hpp>

#include <cmath>
#include <numbers>

namespace plugrad::conformance {
namespace {

// Element i of UNIFORM, as ops.md defines it.
long double uniform_element(uint8_t dtype, uint64_t seed, uint64_t offset, uint64_t i) {
  const uint64_t per_counter = dtype == PLUGRAD_F32 ? 4 : 2;
  const uint64_t c = offset + i / per_counter;
  const PhiloxCounter words = philox({static_cast<uint32_t>(c), static_cast<uint32_t>(c >> 32), 0, 0},
                                     {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  if (dtype == PLUGRAD_F32) return (words[i % 4] >> 8) * 0x1p-24L;
  const uint64_t low = words[2 * (i % 2)], high = words[2 * (i % 2) + 1];
  return static_cast<long double>((high << 32 | low) >> 11) * 0x1p-53L;
}

}  // namespace

std::vector<Problem> random_problems(const Question& question, Random& random) {
  const std::vector<Shape> shapes = {{},        {1},  {2},  {3},   {4},    {5},    {7},       {8},
                                     {9},       {33}, {64}, {101}, {1000}, {5, 7}, {3, 4, 5}, {2, 1, 2, 3, 1, 2, 2, 2},
                                     {257, 301}};
  const std::vector<int64_t> seeds = {0, 1, 1337, -1, int64_t{0x123456789ABCDEF}},
                             offsets = {0, 1, 17, -3, int64_t{0xFFFFFFFE}};
  std::vector<Problem> list;
  for (const Shape& shape : shapes) {
    Problem problem;
    problem.large = count_of(shape) > 10000;
    problem.outputs.emplace_back(question.out(), shape);
    for (const std::vector<int64_t>& values : {seeds, offsets}) {
      problem.inputs.emplace_back(PLUGRAD_I64, Shape{});
      problem.inputs.back().set(0, static_cast<long double>(values[random.below(values.size())]));
    }
    list.push_back(std::move(problem));
  }
  return list;
}

void uniform_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const uint64_t seed = problem.inputs[0].integer(0), offset = problem.inputs[1].integer(0);
  for (size_t i = 0; i < expected[0].elements.size(); ++i)
    expected[0].elements[i].value = uniform_element(question.out(), seed, offset, i);
}

void normal_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const uint64_t seed = problem.inputs[0].integer(0), offset = problem.inputs[1].integer(0);
  for (size_t i = 0; i < expected[0].elements.size(); ++i) {
    const size_t even = i & ~size_t{1};
    const long double u = uniform_element(question.out(), seed, offset, even);
    const long double v = uniform_element(question.out(), seed, offset, even + 1);
    const long double r = std::sqrt(-2 * std::log1p(-u)), angle = 2 * std::numbers::pi_v<long double> * v;
    const long double value = i == even ? r * std::cos(angle) : r * std::sin(angle);
    const long double bound = 32 * limits_of(question.out()).epsilon * std::max(1.0L, std::fabs(value));
    expected[0].elements[i] = {value, bound, true, false};
  }
}

}  // namespace plugrad::conformance
