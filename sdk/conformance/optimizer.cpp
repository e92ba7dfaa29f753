#include <sdk/conformance/op_rows.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace plugrad::conformance {
namespace {

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> list = {
      {}, {1}, {2}, {7}, {16}, {33}, {130}, {5, 7}, {3, 4, 5}, {2, 1, 2, 3, 1, 2, 2, 2}, {257, 301}};
  return list;
}

// Returns a gradient with zeros (a step still changes the results) and with NaN (it must appear in the results).
Array gradient(uint8_t dtype, const Shape& shape, Random& random) {
  Array array = random_array(dtype, shape, {-2, 2}, random);
  for (int64_t i = 0; i < array.count(); ++i)
    if (i % 5 == 2) array.set(i, i % 2 ? 0.0L : -0.0L);
    else if (i % 41 == 40) array.set(i, std::numeric_limits<long double>::quiet_NaN());
  return array;
}

Array scalar(uint8_t dtype, long double value) {
  Array array(dtype, {});
  array.set(0, value);
  return array;
}

// A value, and the sum of the absolute values of its terms.
struct Termed {
  long double value, terms;
};
Termed operator+(Termed a, Termed b) { return {a.value + b.value, a.terms + b.terms}; }
Termed operator-(Termed a, Termed b) { return {a.value - b.value, a.terms + b.terms}; }
Termed operator*(long double a, Termed b) { return {a * b.value, std::fabs(a) * b.terms}; }
Termed exactly(long double value) { return {value, std::fabs(value)}; }

Expected within(uint8_t dtype, Termed t) {
  return {t.value, 16 * limits_of(dtype).epsilon * t.terms + 4 * limits_of(dtype).smallest_denormal, true, false};
}

}  // namespace

std::vector<Problem> descent_problems(const Question& question, Random& random) {
  const uint8_t dtype = question.out();
  std::vector<Problem> list;
  for (const Shape& shape : shapes())
    for (const bool is_zero : {false, true}) {
      Problem problem;
      problem.large = count_of(shape) > 10000;
      problem.outputs = {random_array(dtype, shape, {-1, 1}, random)};
      problem.inputs = {gradient(dtype, shape, random), scalar(dtype, is_zero ? 0 : random.uniform(0.001, 0.5))};
      list.push_back(problem);
    }
  return list;
}

void descent_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const long double rate = problem.inputs[1].get(0);
  for (int64_t i = 0; i < problem.outputs[0].count(); ++i)
    expected[0].elements[i] =
        within(question.out(), exactly(problem.outputs[0].get(i)) - rate * exactly(problem.inputs[0].get(i)));
}

std::vector<Problem> sgd_problems(const Question& question, Random& random) {
  constexpr plugrad_sgd kSettings[] = {{sizeof(plugrad_sgd), 0, 0.9, 0},
                                       {sizeof(plugrad_sgd), 1, 0.9, 0},
                                       {sizeof(plugrad_sgd), 0, 0.5, 0.1},
                                       {sizeof(plugrad_sgd), 1, 0.75, 0.3}};
  const uint8_t dtype = question.out();
  std::vector<Problem> list;
  for (const Shape& shape : shapes()) {
    Problem problem;
    problem.large = count_of(shape) > 10000;
    for (int k = 0; k < 2; ++k) problem.outputs.push_back(random_array(dtype, shape, {-1, 1}, random));
    problem.inputs = {gradient(dtype, shape, random), scalar(dtype, random.uniform(0.001, 0.5))};
    for (const plugrad_sgd& settings : kSettings) {
      problem.set_attributes(settings);
      list.push_back(problem);
      if (problem.large) break;
    }
  }
  return list;
}

void sgd_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const auto settings = problem.attributes_as<plugrad_sgd>();
  const long double rate = problem.inputs[1].get(0);
  for (int64_t i = 0; i < problem.outputs[0].count(); ++i) {
    const Termed p = exactly(problem.outputs[0].get(i)), held = exactly(problem.outputs[1].get(i));
    const Termed g = exactly(problem.inputs[0].get(i)) + settings.weight_decay * p, v = settings.momentum * held + g;
    expected[1].elements[i] = within(question.out(), v);
    expected[0].elements[i] = within(question.out(), p - rate * (settings.nesterov ? g + settings.momentum * v : v));
  }
}

std::vector<Problem> adam_problems(const Question& question, Random& random) {
  constexpr plugrad_adam kSettings[] = {{sizeof(plugrad_adam), 0, 0.9, 0.999, 1e-8, 0},
                                        {sizeof(plugrad_adam), 0, 0.9, 0.999, 1e-8, 0.01},
                                        {sizeof(plugrad_adam), 1, 0.9, 0.95, 1e-6, 0.1},
                                        {sizeof(plugrad_adam), 1, 0.5, 0.75, 1e-3, 0}};
  const uint8_t dtype = question.out();
  std::vector<Problem> list;
  for (const Shape& shape : shapes()) {
    Problem problem;
    problem.large = count_of(shape) > 10000;
    problem.outputs = {random_array(dtype, shape, {-1, 1}, random), random_array(dtype, shape, {-1, 1}, random),
                       random_array(dtype, shape, {0, 1}, random)};
    problem.inputs = {gradient(dtype, shape, random), scalar(dtype, random.uniform(0.001, 0.1))};
    const int t = 1 + static_cast<int>(random.below(50));
    for (const plugrad_adam& settings : kSettings) {
      problem.inputs.resize(2);
      problem.inputs.push_back(scalar(dtype, 1 - std::pow(settings.beta1, t)));
      problem.inputs.push_back(scalar(dtype, 1 - std::pow(settings.beta2, t)));
      problem.set_attributes(settings);
      list.push_back(problem);
      if (problem.large) break;
    }
  }
  return list;
}

void adam_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const auto s = problem.attributes_as<plugrad_adam>();
  const long double rate = problem.inputs[1].get(0), c1 = problem.inputs[2].get(0), c2 = problem.inputs[3].get(0);
  for (int64_t i = 0; i < problem.outputs[0].count(); ++i) {
    Termed p = exactly(problem.outputs[0].get(i)), g = exactly(problem.inputs[0].get(i));
    if (s.decoupled) p = p - (rate * s.weight_decay) * p;
    else g = g + s.weight_decay * p;
    const Termed m = s.beta1 * exactly(problem.outputs[1].get(i)) + (1 - s.beta1) * g;
    const Termed square = {g.value * g.value, g.terms * g.terms};
    const Termed v = s.beta2 * exactly(problem.outputs[2].get(i)) + (1 - s.beta2) * square;
    const long double scale = rate / c1 / (std::sqrt(v.value / c2) + s.epsilon);
    // The root halves the relative error of v, which cancellation in g may have increased.
    const Termed step = {scale * m.value, std::fabs(scale) * m.terms * std::max(1.0L, v.terms / v.value)};
    expected[0].elements[i] = within(question.out(), p - step);
    expected[1].elements[i] = within(question.out(), m);
    expected[2].elements[i] = within(question.out(), v);
  }
}

}  // namespace plugrad::conformance
