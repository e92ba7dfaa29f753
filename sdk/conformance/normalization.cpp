#include <sdk/conformance/op_rows.hpp>

#include <cmath>
#include <limits>

namespace plugrad::conformance {
namespace {

using Real = long double;

// A line of elements to be normalised together, as offsets into the array.
using Line = std::vector<int64_t>;

std::vector<Line> rows_of(const Shape& shape) {
  std::vector<Line> lines(static_cast<size_t>(shape[0]));
  for (int64_t i = 0; i < count_of(shape); ++i) lines[static_cast<size_t>(i / shape[1])].push_back(i);
  return lines;
}
std::vector<Line> channels_of(const Shape& shape) {
  std::vector<Line> lines(static_cast<size_t>(shape[1]));
  for (int64_t i = 0; i < count_of(shape); ++i) lines[static_cast<size_t>(i / shape[2] % shape[1])].push_back(i);
  return lines;
}

// The normalisation of x along a line: the exact values, and the errors allowed by ops.md.
struct Normalised {
  Real mean = 0, variance = 0, scale = 0, mean_error = 0, relative = 0;
  Real of(Real x) const { return (x - mean) * scale; }
  Real error(Real x) const { return scale * mean_error + std::fabs(of(x)) * (relative + shift() * shift()); }
  Real shift() const { return scale * mean_error; }
};

Real tolerance(uint8_t dtype, int64_t n) { return 16 * limits_of(dtype).epsilon + sum_factor(dtype, n); }

Normalised normalised(const Array& x, const Line& line, bool centred, double epsilon) {
  const auto n = static_cast<Real>(line.size());
  Normalised result;
  Real magnitude = 0;
  for (const int64_t i : line) {
    result.mean += x.get(i) / n;
    magnitude += std::fabs(x.get(i)) / n;
  }
  result.relative = tolerance(summed_in(x.dtype()), static_cast<int64_t>(line.size()));
  result.mean_error = centred ? result.relative * magnitude : 0;
  if (!centred) result.mean = 0;
  for (const int64_t i : line) result.variance += (x.get(i) - result.mean) * (x.get(i) - result.mean) / n;
  result.scale = 1 / std::sqrt(result.variance + epsilon);
  return result;
}

// The gradient of y = normalised x, times weight(k), plus a bias, for the elements k of a line.
struct LineGradient {
  Real inner_mean = 0, inner_size = 0, product_mean = 0, product_size = 0, product_error = 0;
  template <class Inner> LineGradient(const Array& x, const Line& line, const Normalised& by, bool centred, Inner inner) {
    const auto n = static_cast<Real>(line.size());
    for (size_t k = 0; k < line.size(); ++k) {
      const Real g = inner(k), value = by.of(x.get(line[k]));
      inner_mean += centred ? g / n : 0;
      inner_size += centred ? std::fabs(g) / n : 0;
      product_mean += g * value / n;
      product_size += std::fabs(g * value) / n;
      product_error += std::fabs(g) * by.error(x.get(line[k])) / n;
    }
  }
  // Of the element x with this incoming gradient.
  Expected of(Real g, Real x, const Normalised& by, uint8_t dtype) const {
    const Real value = by.of(x), size = std::fabs(g) + inner_size + std::fabs(value) * product_size;
    const Real moved = by.error(x) * product_size + std::fabs(value) * product_error;
    const Real factor = by.relative + by.shift() * by.shift();
    return {by.scale * (g - inner_mean - value * product_mean),
            by.scale * (factor * size + moved) + 4 * limits_of(dtype).smallest_denormal, true, false};
  }
};

Expected sum_of_products(const Array& grad, const std::vector<int64_t>& at, const std::vector<Real>& values,
                         const std::vector<Real>& errors) {
  Real sum = 0, size = 0, error = 0;
  for (size_t k = 0; k < at.size(); ++k) {
    const Real g = grad.get(at[k]);
    sum += g * values[k];
    size += std::fabs(g * values[k]);
    error += std::fabs(g) * errors[k];
  }
  const uint8_t dtype = summed_in(grad.dtype());
  const Real rounding = tolerance(dtype, static_cast<int64_t>(at.size())) * size;
  return {sum, rounding + error + 4 * limits_of(dtype).smallest_denormal, true, false};
}

Expected scaled(const Normalised& by, Real x, Real weight, Real bias, uint8_t dtype) {
  const Real value = by.of(x) * weight + bias, epsilon = limits_of(dtype).epsilon;
  const Real bound = std::fabs(weight) * by.error(x) + 8 * epsilon * (std::fabs(value) + std::fabs(bias));
  return {value, bound + 4 * limits_of(dtype).smallest_denormal, true, false};
}

double epsilon_of(const Problem& problem) { return problem.attributes_as<plugrad_norm>().epsilon; }

// Returns elements around 0, far from 0, or with a single non-finite element.
Array elements(uint8_t dtype, const Shape& shape, int kind, Random& random) {
  Array x = random_array(dtype, shape, kind == 1 ? Range{999, 1001} : Range{-3, 3}, random);
  if (kind == 2) x.set(count_of(shape) / 2, random.one_in(2) ? HUGE_VALL : std::numeric_limits<Real>::quiet_NaN());
  return x;
}

const std::vector<Shape> kMatrices = {{1, 1}, {1, 7}, {5, 7}, {9, 1}, {64, 10}, {3, 1000}, {300, 33}, {130, 384}, {6, 5000}};
const std::vector<Shape> kBatches = {{1, 1, 2},   {2, 3, 4},   {5, 2, 1},  {3, 4, 49},  {64, 17, 1},
                                     {2, 3, 300}, {1, 70, 16}, {7, 3, 15}, {3, 2, 2500}};

std::vector<Problem> forward_problems(const Question& question, Random& random, const std::vector<Shape>& shapes) {
  std::vector<Problem> list;
  for (const Shape& shape : shapes)
    for (int kind = 0; kind < 3; ++kind) {
      Problem problem;
      problem.large = count_of(shape) > 10000;
      if (problem.large && kind == 2) continue;
      const Shape parameters{shape[1]};
      problem.outputs.emplace_back(question.out(), shape);
      const Shape statistics{question.op->opcode == PLUGRAD_OP_BATCH_NORM ? shape[1] : shape[0]};
      for (size_t k = 1; k < question.op->outputs; ++k) problem.outputs.emplace_back(question.dtypes[k], statistics);
      problem.inputs.push_back(elements(question.out(), shape, kind, random));
      for (int k = 1; k < question.op->inputs; ++k)
        problem.inputs.push_back(random_array(question.out(), parameters, {-2, 2}, random));
      problem.set_attributes(plugrad_norm{sizeof(plugrad_norm), 0, random.one_in(2) ? 1e-5 : 0.5});
      list.push_back(std::move(problem));
    }
  return list;
}

std::vector<Problem> backward_problems(const Question& question, Random& random, const std::vector<Shape>& shapes) {
  std::vector<Problem> list;
  for (const Shape& shape : shapes)
    for (int kind = 0; kind < 2; ++kind) {
      Problem problem;
      problem.large = count_of(shape) > 10000;
      const Shape parameters{shape[1]};
      for (int k = 0; k < question.op->outputs; ++k) problem.outputs.emplace_back(question.out(), k ? parameters : shape);
      problem.inputs.push_back(random_array(question.out(), shape, {-2, 2}, random));
      problem.inputs.push_back(elements(question.out(), shape, kind, random));
      problem.inputs.push_back(random_array(question.out(), parameters, {-2, 2}, random));
      list.push_back(std::move(problem));
    }
  return list;
}

// The scale of a line, which an error of the mean moves as well.
Expected scale_of(const Normalised& by, uint8_t dtype) {
  const Real bound = by.scale * (by.relative + by.shift() * by.shift());
  return {by.scale, bound + 4 * limits_of(dtype).smallest_denormal, true, false};
}
Expected mean_of(const Normalised& by, uint8_t dtype) {
  return {by.mean, by.mean_error + 4 * limits_of(dtype).smallest_denormal, true, !std::isfinite(by.mean)};
}

void row_norm(const Question& question, const Problem& problem, Expectations& expected, bool centred) {
  const Array &x = problem.inputs[0], &weight = problem.inputs[1];
  const int64_t n = x.shape()[1];
  const std::vector<Line> lines = rows_of(x.shape());
  const size_t scales = centred ? 2 : 1;
  for (size_t row = 0; row < lines.size(); ++row) {
    const Line& line = lines[row];
    const Normalised by = normalised(x, line, centred, epsilon_of(problem));
    if (centred) expected[1].elements[row] = mean_of(by, question.dtypes[1]);
    expected[scales].elements[row] = scale_of(by, question.dtypes[scales]);
    for (const int64_t i : line)
      expected[0].elements[i] =
          scaled(by, x.get(i), weight.get(i % n), centred ? problem.inputs[2].get(i % n) : 0, question.out());
  }
}

void row_norm_backward(const Question& question, const Problem& problem, Expectations& expected, bool centred) {
  const Array &grad = problem.inputs[0], &x = problem.inputs[1], &weight = problem.inputs[2];
  const size_t n = static_cast<size_t>(x.shape()[1]);
  std::vector<Line> columns(n);
  std::vector<std::vector<Real>> values(n), errors(n);
  const std::vector<Line> lines = rows_of(x.shape());
  for (size_t row = 0; row < lines.size(); ++row) {
    const Line& line = lines[row];
    const auto at = static_cast<int64_t>(row);
    Normalised by;
    by.mean = centred ? problem.inputs[3].get(at) : 0;
    by.scale = problem.inputs[centred ? 4 : 3].get(at);
    by.relative = tolerance(summed_in(question.out()), static_cast<int64_t>(line.size()));
    const auto inner = [&](size_t k) { return grad.get(line[k]) * weight.get(static_cast<int64_t>(k)); };
    const LineGradient gradient(x, line, by, centred, inner);
    for (size_t k = 0; k < n; ++k) {
      expected[0].elements[line[k]] = gradient.of(inner(k), x.get(line[k]), by, question.out());
      columns[k].push_back(line[k]);
      values[k].push_back(by.of(x.get(line[k])));
      errors[k].push_back(by.error(x.get(line[k])));
    }
  }
  for (size_t k = 0; k < n; ++k) {
    expected[1].elements[k] = sum_of_products(grad, columns[k], values[k], errors[k]);
    if (!centred) continue;
    expected[2].elements[k] =
        sum_of_products(grad, columns[k], std::vector<Real>(columns[k].size(), 1), std::vector<Real>(columns[k].size(), 0));
  }
}

}  // namespace

std::vector<Problem> row_norm_problems(const Question& question, Random& random) {
  return forward_problems(question, random, kMatrices);
}
// The statistics may be any numbers: here the statistics of x, rounded.
std::vector<Problem> row_norm_backward_problems(const Question& question, Random& random) {
  std::vector<Problem> list = backward_problems(question, random, kMatrices);
  const bool centred = question.op->opcode == PLUGRAD_OP_LAYER_NORM_BACKWARD;
  for (Problem& problem : list) {
    const std::vector<Line> lines = rows_of(problem.inputs[1].shape());
    Array mean(question.dtypes.back(), {static_cast<int64_t>(lines.size())}), rstd = mean;
    for (size_t row = 0; row < lines.size(); ++row) {
      const Normalised by = normalised(problem.inputs[1], lines[row], centred, 1e-5);
      mean.set(static_cast<int64_t>(row), by.mean);
      rstd.set(static_cast<int64_t>(row), by.scale);
    }
    if (centred) problem.inputs.push_back(std::move(mean));
    problem.inputs.push_back(std::move(rstd));
  }
  return list;
}
std::vector<Problem> batch_norm_problems(const Question& question, Random& random) {
  return forward_problems(question, random, kBatches);
}

// The statistics may be any numbers: here the statistics of x, rounded.
std::vector<Problem> batch_norm_backward_problems(const Question& question, Random& random) {
  std::vector<Problem> list = backward_problems(question, random, kBatches);
  for (Problem& problem : list) {
    const std::vector<Line> lines = channels_of(problem.inputs[1].shape());
    const Shape channels{static_cast<int64_t>(lines.size())};
    Array mean(question.dtypes.back(), channels), variance = mean;
    for (size_t c = 0; c < lines.size(); ++c) {
      const Normalised by = normalised(problem.inputs[1], lines[c], true, 0);
      mean.set(static_cast<int64_t>(c), by.mean);
      variance.set(static_cast<int64_t>(c), by.variance);
    }
    problem.inputs.push_back(std::move(mean));
    problem.inputs.push_back(std::move(variance));
    problem.set_attributes(plugrad_norm{sizeof(plugrad_norm), 0, random.one_in(2) ? 1e-5 : 0.5});
  }
  return list;
}

void layer_norm_reference(const Question& question, const Problem& problem, Expectations& expected) {
  row_norm(question, problem, expected, true);
}
void rms_norm_reference(const Question& question, const Problem& problem, Expectations& expected) {
  row_norm(question, problem, expected, false);
}
void layer_norm_backward_reference(const Question& question, const Problem& problem, Expectations& expected) {
  row_norm_backward(question, problem, expected, true);
}
void rms_norm_backward_reference(const Question& question, const Problem& problem, Expectations& expected) {
  row_norm_backward(question, problem, expected, false);
}

void batch_norm_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const Array &x = problem.inputs[0], &weight = problem.inputs[1], &bias = problem.inputs[2];
  const std::vector<Line> lines = channels_of(x.shape());
  for (size_t at = 0; at < lines.size(); ++at) {
    const auto c = static_cast<int64_t>(at);
    const Normalised by = normalised(x, lines[at], true, epsilon_of(problem));
    for (const int64_t i : lines[at])
      expected[0].elements[i] = scaled(by, x.get(i), weight.get(c), bias.get(c), question.out());
    const uint8_t dtype = question.dtypes[1];
    const Real least = 4 * limits_of(dtype).smallest_denormal;
    expected[1].elements[at] = mean_of(by, dtype);
    // Rounded means of parts of the channel move its variance.
    const Real moved = 4 * limits_of(dtype).epsilon * std::fabs(by.mean) * std::sqrt(by.variance);
    const Real bound = by.relative * by.variance + by.mean_error * by.mean_error + moved + least;
    expected[2].elements[at] = {by.variance, bound, true, false};
  }
}

void batch_norm_backward_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const Array &grad = problem.inputs[0], &x = problem.inputs[1], &weight = problem.inputs[2];
  const std::vector<Line> lines = channels_of(x.shape());
  for (size_t at = 0; at < lines.size(); ++at) {
    const Line& line = lines[at];
    const auto c = static_cast<int64_t>(at);
    Normalised by;
    by.mean = problem.inputs[3].get(c);
    by.variance = problem.inputs[4].get(c);
    by.scale = 1 / std::sqrt(by.variance + epsilon_of(problem));
    by.relative = tolerance(summed_in(question.out()), static_cast<int64_t>(line.size()));
    const auto inner = [&](size_t k) { return grad.get(line[k]) * weight.get(c); };
    const LineGradient gradient(x, line, by, true, inner);
    std::vector<Real> values, errors, ones(line.size(), 1), zeros(line.size(), 0);
    for (size_t k = 0; k < line.size(); ++k) {
      expected[0].elements[line[k]] = gradient.of(inner(k), x.get(line[k]), by, question.out());
      values.push_back(by.of(x.get(line[k])));
      errors.push_back(by.error(x.get(line[k])));
    }
    expected[1].elements[at] = sum_of_products(grad, line, values, errors);
    expected[2].elements[at] = sum_of_products(grad, line, ones, zeros);
  }
}

}  // namespace plugrad::conformance
