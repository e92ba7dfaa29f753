#include <sdk/conformance/op_rows.hpp>

#include <cmath>

namespace plugrad::conformance {
namespace {

using Real = long double;

const std::vector<Shape> kShapes = {
    {}, {1}, {2}, {9}, {31}, {64}, {130}, {6, 1}, {5, 7}, {3, 4, 5}, {2, 1, 2, 3, 1, 2, 2, 2}, {257, 301}};

Real wrapped_real(uint8_t dtype, uint64_t value) { return static_cast<Real>(wrapped(dtype, static_cast<int64_t>(value))); }

}  // namespace

std::vector<Problem> iota_problems(const Question& question, Random& random) {
  std::vector<Problem> list;
  constexpr Real kStartStep[][2] = {{0, 1},         {5, 0},    {-3, 2},      {10, -1},    {0.5L, 0.25L},
                                    {100, -0.125L}, {1e6L, 3}, {0.1L, 0.3L}, {-2, 1e-3L}, {1e4L, 0.7L}};
  for (const Shape& shape : kShapes) {
    Problem problem;
    problem.large = count_of(shape) > 10000;
    problem.outputs.emplace_back(question.out(), shape);
    const auto& pair = problem.large ? kStartStep[7] : kStartStep[random.below(std::size(kStartStep))];
    for (const Real value : pair) {
      problem.inputs.emplace_back(question.out(), Shape{});
      const Real whole =
          is_floating(question.out()) ? value : static_cast<Real>(wrapped(question.out(), static_cast<int64_t>(value)));
      problem.inputs.back().set(0, whole);
    }
    list.push_back(std::move(problem));
  }
  return list;
}

void iota_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const Array &start = problem.inputs[0], &step = problem.inputs[1];
  for (int64_t i = 0; i < problem.outputs[0].count(); ++i) {
    Expected& e = expected[0].elements[i];
    if (is_floating(question.out())) {
      const double value = static_cast<double>(start.get(0)) + static_cast<double>(i) * static_cast<double>(step.get(0));
      e = {rounded(question.out(), value), 0, true, false};
    } else {
      e.value =
          wrapped_real(question.out(), static_cast<uint64_t>(start.integer(0)) + i * static_cast<uint64_t>(step.integer(0)));
    }
  }
}

void allow_iota_in_f32(const Problem& problem, Expectations& expected) {
  const Real start = problem.inputs[0].get(0), step = problem.inputs[1].get(0);
  const int64_t count = problem.outputs[0].count();
  const auto is_small = [](Real x) { return x == std::trunc(x) && std::fabs(x) < 0x1p24L; };
  if (is_small(start) && is_small(step) && is_small(start + static_cast<Real>(count - 1) * step)) return;
  for (int64_t i = 0; i < count; ++i) {
    Expected& e = expected[0].elements[i];
    const Real size = std::fabs(start) + std::fabs(static_cast<Real>(i) * step);
    e.bound = 4 * limits_of(PLUGRAD_F32).epsilon * size + ulp_bound(PLUGRAD_F32, e.value, 0.5L);
  }
}

}  // namespace plugrad::conformance
