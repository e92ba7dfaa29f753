#include <tests/cuda/random_kinds.hpp>

#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <optional>

namespace plugrad::test {

namespace {
std::optional<Step> draw_leaf(const std::vector<Step>&, Random& random) {
  return made(-1, draw_shape(random), {below(random, 1 << 30)});
}

std::optional<Step> draw_permute(const std::vector<Step>& steps, Random& random) {
  const int a = pick_of_rank(steps, random, 2);
  if (a < 0) return {};
  const Shape& from = shape_at(steps, a);
  Numbers axes;
  for (size_t i = 0; i < from.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  std::shuffle(axes.begin(), axes.end(), random);
  Shape shape;
  for (const int64_t axis : axes) shape.push_back(from[static_cast<size_t>(axis)]);
  return made(a, shape, axes);
}

std::optional<Step> draw_flat(const std::vector<Step>& steps, Random& random) {
  const int a = pick(steps, random);
  return made(a, Shape{shape_at(steps, a).count()});
}

// numbers: axis, start, end, step.
std::optional<Step> draw_slice(const std::vector<Step>& steps, Random& random) {
  const int a = pick_of_rank(steps, random, 1);
  if (a < 0) return {};
  Shape shape = shape_at(steps, a);
  const int64_t axis = below(random, static_cast<int64_t>(shape.size())), extent = shape[static_cast<size_t>(axis)];
  const int64_t start = below(random, extent), end = start + 1 + below(random, extent - start), by = 1 + below(random, 3);
  shape[static_cast<size_t>(axis)] = (end - start + by - 1) / by;
  return made(a, shape, {axis, start, end, by});
}

std::optional<Step> draw_expand(const std::vector<Step>& steps, Random& random) {
  const int a = pick(steps, random);
  Shape shape{1 + below(random, 3)};
  for (const int64_t extent : shape_at(steps, a)) shape.push_back(extent == 1 ? 1 + below(random, 4) : extent);
  return made(a, shape);
}

std::optional<Step> draw_cat(const std::vector<Step>& steps, Random& random) {
  const int a = pick_of_rank(steps, random, 1);
  if (a < 0) return {};
  Shape shape = shape_at(steps, a);
  const int64_t axis = below(random, static_cast<int64_t>(shape.size()));
  shape[static_cast<size_t>(axis)] *= 2;
  return made(a, shape, {axis}, a);
}

// numbers: the axis, its new extent, and indices for all elements.
std::optional<Step> draw_gather(const std::vector<Step>& steps, Random& random) {
  const int a = pick_of_rank(steps, random, 1);
  if (a < 0) return {};
  Shape shape = shape_at(steps, a);
  const int64_t axis = below(random, static_cast<int64_t>(shape.size())), extent = shape[static_cast<size_t>(axis)];
  shape[static_cast<size_t>(axis)] = 1 + below(random, 6);
  Numbers numbers{axis, shape[static_cast<size_t>(axis)]};
  for (int64_t i = shape.count(); i > 0; --i) numbers.push_back(below(random, extent));
  return made(a, shape, numbers);
}
Tensor indices_of(const Step& step, const Shape& shape, Device device) {
  return Tensor::from(std::vector<int64_t>(step.numbers.begin() + 2, step.numbers.end()), shape, device);
}

// numbers: the axis, the new extent of the sum, and where each element goes.
std::optional<Step> draw_scatter(const std::vector<Step>& steps, Random& random) {
  const int a = pick_of_rank(steps, random, 1);
  if (a < 0) return {};
  Shape shape = shape_at(steps, a);
  const int64_t axis = below(random, static_cast<int64_t>(shape.size())), elements = shape.count(),
                extent = 1 + below(random, 4);
  shape[static_cast<size_t>(axis)] = extent;
  Numbers numbers{axis, extent};
  for (int64_t i = 0; i < elements; ++i) numbers.push_back(below(random, extent));
  return made(a, shape, numbers);
}
Tensor run_scatter(const Step& step, const Tensor& a) {
  const Tensor none = mul(slice(a, static_cast<int>(step.numbers[0]), 0, 1), 0.5);
  return scatter_add(contiguous(expand(none, step.shape)), static_cast<int>(step.numbers[0]),
                     indices_of(step, a.shape(), a.device()), a);
}

// numbers: classes, then a target for each row.
std::optional<Step> draw_cross_entropy(const std::vector<Step>& steps, Random& random) {
  const int a = pick(steps, random);
  const int64_t classes = shape_at(steps, a).empty() ? 1 : shape_at(steps, a).back(),
                rows = shape_at(steps, a).count() / classes;
  Numbers numbers{classes};
  for (int64_t i = 0; i < rows; ++i) numbers.push_back(below(random, classes));
  return made(a, Shape{rows}, numbers);
}
Tensor run_cross_entropy(const Step& step, const Tensor& a) {
  const std::vector<int64_t> targets(step.numbers.begin() + 1, step.numbers.end());
  return cross_entropy(reshape(a, {step.shape[0], step.numbers[0]}), Tensor::from(targets, step.shape, a.device()),
                       Reduction::none);
}

// Values stay within a few orders of magnitude in every program; conformance tests poles and overflow.
constexpr StepKind kKinds[] = {
    {"leaf", draw_leaf, nullptr},
    {"neg", draw_same, [](const Step&, const Tensor& a, const Tensor&) { return -a; }},
    {"abs", draw_same, [](const Step&, const Tensor& a, const Tensor&) { return abs(a); }},
    {"relu", draw_same, [](const Step&, const Tensor& a, const Tensor&) { return relu(a); }},
    {"tanh", draw_same, [](const Step&, const Tensor& a, const Tensor&) { return tanh(a); }},
    {"sigmoid", draw_same, [](const Step&, const Tensor& a, const Tensor&) { return sigmoid(a); }},
    {"exp of tanh", draw_same, [](const Step&, const Tensor& a, const Tensor&) { return exp(tanh(a)); }},
    {"log of 1 + x^2", draw_same, [](const Step&, const Tensor& a, const Tensor&) { return log(1 + a * a); }},
    {"sqrt of 1 + |x|", draw_same, [](const Step&, const Tensor& a, const Tensor&) { return sqrt(1 + abs(a)); }},
    {"pow 1.5 of 1 + |x|", draw_same, [](const Step&, const Tensor& a, const Tensor&) { return pow(1 + abs(a), 1.5); }},
    {"contiguous", draw_same, [](const Step&, const Tensor& a, const Tensor&) { return contiguous(a); }},
    {"2 - 0.5 x", draw_same, [](const Step&, const Tensor& a, const Tensor&) { return 2 - 0.5 * a; }},
    {"add", draw_pair, [](const Step&, const Tensor& a, const Tensor& b) { return a + b; }},
    {"sub", draw_pair, [](const Step&, const Tensor& a, const Tensor& b) { return a - b; }},
    {"mul", draw_pair, [](const Step&, const Tensor& a, const Tensor& b) { return a * tanh(b); }},
    {"div", draw_pair, [](const Step&, const Tensor& a, const Tensor& b) { return a / (2 + tanh(b)); }},
    {"pow", draw_pair, [](const Step&, const Tensor& a, const Tensor& b) { return pow(sigmoid(a) + 0.5, tanh(b)); }},
    {"maximum", draw_pair, [](const Step&, const Tensor& a, const Tensor& b) { return maximum(a, b); }},
    {"minimum", draw_pair, [](const Step&, const Tensor& a, const Tensor& b) { return minimum(a, b); }},
    {"where lt", draw_pair, [](const Step&, const Tensor& a, const Tensor& b) { return where(lt(a, b), a, b * 0.5); }},
    {"sum", draw_reduction, [](const Step& s, const Tensor& a, const Tensor&) { return sum(a, axes_of(s), s.numbers[0]); }},
    {"mean", draw_reduction,
     [](const Step& s, const Tensor& a, const Tensor&) { return mean(a, axes_of(s), s.numbers[0]); }},
    {"max", draw_reduction, [](const Step& s, const Tensor& a, const Tensor&) { return max(a, axes_of(s), s.numbers[0]); }},
    {"min", draw_reduction, [](const Step& s, const Tensor& a, const Tensor&) { return min(a, axes_of(s), s.numbers[0]); }},
    {"log_softmax", draw_axis,
     [](const Step& s, const Tensor& a, const Tensor&) { return log_softmax(a, static_cast<int>(s.numbers[0])); }},
    {"cross_entropy", draw_cross_entropy,
     [](const Step& s, const Tensor& a, const Tensor&) { return run_cross_entropy(s, a); }},
    {"permute", draw_permute, [](const Step& s, const Tensor& a, const Tensor&) { return permute(a, s.numbers); }},
    {"flat", draw_flat, [](const Step& s, const Tensor& a, const Tensor&) { return reshape(a, s.shape); }},
    {"slice", draw_slice,
     [](const Step& s, const Tensor& a, const Tensor&) {
       return slice(a, static_cast<int>(s.numbers[0]), s.numbers[1], s.numbers[2], s.numbers[3]);
     }},
    {"expand", draw_expand, [](const Step& s, const Tensor& a, const Tensor&) { return expand(a, s.shape); }},
    {"cat with itself", draw_cat,
     [](const Step& s, const Tensor& a, const Tensor& b) { return cat({a, b}, static_cast<int>(s.numbers[0])); }},
    {"x x^T / 4", draw_matmul, [](const Step&, const Tensor& a, const Tensor&) { return matmul(a, transpose(a)) * 0.25; }},
    {"gather", draw_gather,
     [](const Step& s, const Tensor& a, const Tensor&) {
       return gather(a, static_cast<int>(s.numbers[0]), indices_of(s, s.shape, a.device()));
     }},
    {"scatter_add", draw_scatter, [](const Step& s, const Tensor& a, const Tensor&) { return run_scatter(s, a); }},
};

bool is_leaf(const Step& step) { return step.kind == &kKinds[0]; }

// Returns any kind from both tables, leaves included.
const StepKind& draw_kind(Random& random) {
  const std::span<const StepKind> wide = wide_kinds();
  const int64_t narrow = static_cast<int64_t>(std::size(kKinds)), at = below(random, narrow + std::ssize(wide));
  return at < narrow ? kKinds[at] : wide[static_cast<size_t>(at - narrow)];
}

void draw_into(Program& program, const StepKind& kind, Random& random) {
  std::optional<Step> step = kind.draw(program.steps, random);
  if (!step) return;
  step->kind = &kind;
  program.steps.push_back(std::move(*step));
}

Tensor make_leaf(const Step& step, DType dtype, Device device) {
  Random random(static_cast<uint64_t>(step.numbers[0]));
  std::vector<double> values(static_cast<size_t>(step.shape.count()));
  for (double& x : values)
    // a value that f32 and f64 represent exactly
    x = static_cast<double>(static_cast<float>(std::uniform_real_distribution<double>(-2, 2)(random)));
  Tensor leaf = dtype == DType::f64 ? Tensor::from(values, step.shape, device)
                                    : Tensor::from(std::vector<float>(values.begin(), values.end()), step.shape, device);
  return leaf.requires_grad_();
}

std::vector<double> numbers_of(const Tensor& x) {
  if (x.dtype() == DType::f64) return x.to_vector<double>();
  const std::vector<float> all = x.to_vector<float>();
  return {all.begin(), all.end()};
}
}  // namespace

Program draw_program(uint64_t seed) {
  Random random(seed);
  Program program{seed, {}};
  for (int64_t leaves = 2 + below(random, 3); leaves > 0; --leaves) draw_into(program, kKinds[0], random);
  for (int64_t steps = 5 + below(random, 6) * below(random, 8); steps > 0; --steps)
    draw_into(program, draw_kind(random), random);
  return program;
}

bool is_used(const Program& program, size_t step) {
  const int at = static_cast<int>(step);
  return std::ranges::any_of(program.steps, [&](const Step& each) { return each.a == at || each.b == at; });
}

Program without_step(const Program& program, size_t step) {
  Program rest = program;
  rest.steps.erase(rest.steps.begin() + static_cast<std::ptrdiff_t>(step));
  for (Step& each : rest.steps)
    for (int* operand : {&each.a, &each.b})
      if (*operand > static_cast<int>(step)) --*operand;
  return rest;
}

std::string Program::text() const {
  std::string all = "program of seed " + std::to_string(seed) + ":\n";
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    all += "  v" + std::to_string(i) + " = " + step.kind->name;
    for (const int operand : {step.a, step.b})
      if (operand >= 0) all += " v" + std::to_string(operand);
    all += " (";
    for (const int64_t extent : step.shape) all += std::to_string(extent) + ",";
    all += ")";
    for (size_t n = 0; n < step.numbers.size() && n < 12; ++n) all += " " + std::to_string(step.numbers[n]);
    all += "\n";
  }
  return all;
}

Results run_program(const Program& program, DType dtype, Device device) {
  std::vector<Tensor> values;
  std::vector<bool> used(program.steps.size());
  for (const Step& step : program.steps) {
    for (const int operand : {step.a, step.b})
      if (operand >= 0) used[static_cast<size_t>(operand)] = true;
    const Tensor none;
    values.push_back(is_leaf(step) ? make_leaf(step, dtype, device)
                                   : step.kind->run(step, values[static_cast<size_t>(step.a)],
                                                    step.b < 0 ? none : values[static_cast<size_t>(step.b)]));
  }
  Tensor loss;
  for (size_t i = 0; i < values.size(); ++i)
    if (!used[i]) loss = loss.defined() ? loss + mean(values[i]) : mean(values[i]);
  loss.backward();
  Results results;
  for (size_t i = 0; i < values.size(); ++i) {
    results.values.push_back(numbers_of(values[i]));
    if (is_leaf(program.steps[i])) results.gradients.push_back(numbers_of(values[i].grad()));
  }
  return results;
}

}  // namespace plugrad::test
