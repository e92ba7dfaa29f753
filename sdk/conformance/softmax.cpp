#include <sdk/conformance/op_rows.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace plugrad::conformance {
namespace {

constexpr long double kNaN = std::numeric_limits<long double>::quiet_NaN();

struct Rows {
  Shape shape;
  int32_t axis;
};

const std::vector<Rows>& rows() {
  static const std::vector<Rows> list = {{{1}, 0},      {{7}, 0},        {{1, 1}, 1},    {{5, 7}, 1},
                                         {{5, 7}, 0},   {{3, 4, 5}, 0},  {{3, 4, 5}, 1}, {{3, 4, 5}, 2},
                                         {{64, 10}, 1}, {{10, 64}, 0},   {{4, 1000}, 1}, {{2, 1, 2, 3, 1, 2, 2, 2}, 5},
                                         {{9, 1}, 1},   {{129, 257}, 1}, {{3, 5000}, 1}};
  return list;
}

// The elements along the axis, as offsets from the first, for each line of an array.
template <class Visit> void for_each_line(const Shape& shape, int32_t axis, Visit visit) {
  Shape outer = shape;
  const Shape strides = row_major(shape);
  outer[axis] = 1;
  Walk walk(outer);
  std::vector<int64_t> line(shape[axis]);
  for (int64_t i = 0, n = count_of(outer); i < n; ++i, walk.next()) {
    for (int64_t j = 0; j < shape[axis]; ++j) line[j] = dot(walk.index(), strides) + j * strides[axis];
    visit(line, i);
  }
}

// ln sum e^x over a line, its maximum and the rest, and whether a value of the line makes it undefined.
struct LogSumExp {
  long double value, maximum, rest, largest_term;
  bool undefined;
};
LogSumExp log_sum_exp(const Array& x, const std::vector<int64_t>& line) {
  long double maximum = -HUGE_VALL, largest = 1;
  bool nan = false;
  for (const int64_t i : line) {
    nan = nan || std::isnan(x.get(i));
    maximum = std::max(maximum, x.get(i));
    if (std::isfinite(x.get(i))) largest = std::max(largest, std::fabs(x.get(i)));
  }
  if (nan || std::isinf(maximum)) return {kNaN, maximum, kNaN, largest, true};
  long double sum = 0;
  for (const int64_t i : line) sum += std::exp(x.get(i) - maximum);
  const long double rest = std::log(sum), value = maximum + rest;
  return {value, maximum, rest, std::max(largest, std::fabs(value)), false};
}

long double term_bound(uint8_t dtype, long double largest) {
  return 16 * limits_of(dtype).epsilon * std::max(1.0L, largest);
}

// Logits of several magnitudes, some with special values.
Array logits(uint8_t dtype, const Shape& shape, int kind, Random& random) {
  if (kind == 0) return random_array(dtype, shape, {-5, 5}, random);
  if (kind == 1) return random_array(dtype, shape, {-500, 500}, random);
  return sprinkled_array(dtype, shape, {-5, 5}, 12, random);
}

}  // namespace

std::vector<Problem> log_softmax_problems(const Question& question, Random& random) {
  std::vector<Problem> list;
  for (const Rows& r : rows()) {
    for (int kind = 0; kind < 4; ++kind) {
      Problem problem;
      problem.large = count_of(r.shape) > 10000;
      if (problem.large && kind != 0) continue;
      problem.outputs.emplace_back(question.out(), r.shape);
      problem.inputs.push_back(logits(question.out(), r.shape, kind, random));
      if (kind == 3) {  // some lines with nothing but -inf
        Array& x = problem.inputs[0];
        for_each_line(r.shape, r.axis, [&](const std::vector<int64_t>& line, int64_t i) {
          for (const int64_t j : line)
            if (i % 3 == 0) x.set(j, -HUGE_VALL);
        });
      }
      problem.set_attributes(plugrad_axis{sizeof(plugrad_axis), r.axis});
      list.push_back(std::move(problem));
    }
  }
  return list;
}

void log_softmax_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const Array& x = problem.inputs[0];
  const uint8_t dtype = question.out();
  for_each_line(x.shape(), problem.attributes_as<plugrad_axis>().axis, [&](const std::vector<int64_t>& line, int64_t) {
    const LogSumExp lse = log_sum_exp(x, line);
    const long double sum_error = sum_factor(dtype, static_cast<int64_t>(line.size()));
    for (const int64_t i : line) {
      Expected& e = expected[0].elements[i];
      const long double value = lse.undefined ? kNaN : x.get(i) - lse.value;
      e = {value, term_bound(dtype, lse.largest_term) + sum_error, true, false};
      e.unspecified = !lse.undefined && std::isfinite(value) && lse.largest_term >= limits_of(dtype).largest / 2;
    }
  });
}

void softmax_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const Array& x = problem.inputs[0];
  const uint8_t dtype = question.out();
  for_each_line(x.shape(), problem.attributes_as<plugrad_axis>().axis, [&](const std::vector<int64_t>& line, int64_t) {
    const LogSumExp lse = log_sum_exp(x, line);
    const long double sum_error = sum_factor(dtype, static_cast<int64_t>(line.size()));
    for (const int64_t i : line) {
      const long double value = lse.undefined ? kNaN : std::exp(x.get(i) - lse.maximum - lse.rest);
      const long double apart = std::min(1e4L, std::fabs(x.get(i) - lse.maximum));  // rounded, before the exponential
      const long double bound = value * (limits_of(dtype).epsilon * (16 + apart) + sum_error);
      expected[0].elements[i] = {value, bound + 4 * limits_of(dtype).smallest_denormal, true, false};
      expected[0].elements[i].unspecified = !lse.undefined && lse.largest_term >= limits_of(dtype).largest / 2;
    }
  });
}

std::vector<Problem> softmax_backward_problems(const Question& question, Random& random) {
  std::vector<Problem> list = log_softmax_backward_problems(question, random);
  for (Problem& problem : list) problem.inputs[1] = random_array(question.out(), problem.inputs[1].shape(), {0, 1}, random);
  return list;
}

void softmax_backward_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const Array &grad = problem.inputs[0], &y = problem.inputs[1];
  const uint8_t dtype = question.out();
  for_each_line(y.shape(), problem.attributes_as<plugrad_axis>().axis, [&](const std::vector<int64_t>& line, int64_t) {
    Sum sum;
    for (const int64_t i : line) sum.add_product(static_cast<double>(grad.get(i)), static_cast<double>(y.get(i)));
    for (const int64_t i : line) {
      const long double terms = std::fabs(grad.get(i)) + std::fabs(sum.value()), size = std::fabs(y.get(i));
      const long double bound = 16 * limits_of(dtype).epsilon * terms + sum_factor(dtype, sum.terms()) * sum.magnitude();
      const long double value = y.get(i) * (grad.get(i) - sum.value());
      expected[0].elements[i] = {value, size * bound + 4 * limits_of(dtype).smallest_denormal, true, false};
    }
  });
}

std::vector<Problem> log_softmax_backward_problems(const Question& question, Random& random) {
  std::vector<Problem> list;
  for (const Rows& r : rows()) {
    Problem problem;
    problem.large = count_of(r.shape) > 10000;
    problem.outputs.emplace_back(question.out(), r.shape);
    problem.inputs.push_back(random_array(question.out(), r.shape, {-3, 3}, random));
    problem.inputs.push_back(random_array(question.out(), r.shape, {-20, 0}, random));
    problem.set_attributes(plugrad_axis{sizeof(plugrad_axis), r.axis});
    list.push_back(std::move(problem));
  }
  return list;
}

void log_softmax_backward_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const Array &grad = problem.inputs[0], &y = problem.inputs[1];
  const uint8_t dtype = question.out();
  for_each_line(y.shape(), problem.attributes_as<plugrad_axis>().axis, [&](const std::vector<int64_t>& line, int64_t) {
    Sum sum;
    for (const int64_t i : line) sum.add(static_cast<double>(grad.get(i)));
    for (const int64_t i : line) {
      const long double weight = std::exp(y.get(i)), product = weight * sum.value();
      const long double largest = std::max(std::fabs(grad.get(i)), std::fabs(product));
      const long double bound = term_bound(dtype, largest) + weight * sum_factor(dtype, sum.terms()) * sum.magnitude();
      expected[0].elements[i] = {grad.get(i) - product, bound, true, false};
    }
  });
}

std::vector<Problem> cross_entropy_problems(const Question& question, Random& random) {
  std::vector<Problem> list;
  for (const Shape& shape : std::vector<Shape>{{1, 1}, {1, 7}, {5, 7}, {9, 1}, {64, 10}, {3, 1000}, {130, 90}, {2, 5001}}) {
    for (int kind = 0; kind < 3; ++kind) {
      Problem problem;
      problem.large = count_of(shape) > 10000;
      for (int k = 0; k < 2; ++k) problem.outputs.emplace_back(question.out(), Shape{shape[0]});
      Array x = logits(question.in(0), shape, kind, random);
      for (int64_t i = 0; i < x.count(); ++i)  // ops.md does not define rows with an infinite lse
        if (x.get(i) == HUGE_VALL || (x.get(i) == -HUGE_VALL && i % shape[1] == 0)) x.set(i, 1);
      problem.inputs.push_back(std::move(x));
      problem.inputs.push_back(index_array({shape[0]}, shape[1], random));
      list.push_back(std::move(problem));
    }
  }
  return list;
}

void cross_entropy_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const Array &x = problem.inputs[0], &target = problem.inputs[1];
  const uint8_t dtype = question.out();
  for_each_line(x.shape(), 1, [&](const std::vector<int64_t>& line, int64_t row) {
    const LogSumExp lse = log_sum_exp(x, line);
    const long double bound = term_bound(dtype, lse.largest_term) + sum_factor(dtype, static_cast<int64_t>(line.size()));
    const long double chosen = x.get(line[target.integer(row)]);
    expected[0].elements[row] = {lse.value - chosen, bound, true, false};
    expected[1].elements[row] = {lse.value, bound, true, false};
    const bool only_minus_infinity = lse.maximum == -HUGE_VALL;
    const bool overflows = lse.largest_term >= limits_of(dtype).largest / 2 && !lse.undefined;
    for (Expectation& output : expected) output.elements[row].unspecified = only_minus_infinity || overflows;
  });
}

std::vector<Problem> cross_entropy_backward_problems(const Question& question, Random& random) {
  std::vector<Problem> list = cross_entropy_problems(question, random);
  for (Problem& problem : list) {
    const int64_t n = problem.inputs[0].shape()[0], c = problem.inputs[0].shape()[1];
    Array x = random_array(question.in(1), {n, c}, {-5, 5}, random), lse(question.in(3), {n});
    for_each_line(x.shape(), 1,
                  [&](const std::vector<int64_t>& line, int64_t row) { lse.set(row, log_sum_exp(x, line).value); });
    Array target = problem.inputs[1];
    problem.outputs.assign(1, Array(question.out(), {n, c}));
    problem.inputs = {random_array(question.in(0), {n}, {-2, 2}, random), std::move(x), std::move(target), std::move(lse)};
  }
  return list;
}

void cross_entropy_backward_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const Array &grad = problem.inputs[0], &x = problem.inputs[1], &target = problem.inputs[2], &lse = problem.inputs[3];
  const int64_t c = x.shape()[1];
  const FloatLimits& limits = limits_of(question.out());
  for (int64_t i = 0; i < x.count(); ++i) {
    const long double g = grad.get(i / c), weight = std::exp(x.get(i) - lse.get(i / c));
    const int one = target.integer(i / c) == i % c;
    // The exponent is rounded before the exponential.
    const long double terms = weight * std::max(1.0L, std::fabs(x.get(i)) + std::fabs(lse.get(i / c))) + one;
    const long double bound = 16 * limits.epsilon * std::fabs(g) * terms + 4 * limits.smallest_denormal * (1 + std::fabs(g));
    expected[0].elements[i] = {g * (weight - one), bound, true, false};
  }
}

}  // namespace plugrad::conformance
