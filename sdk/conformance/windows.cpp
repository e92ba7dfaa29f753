// Convolutions and pooling.
#include <sdk/conformance/op_rows.hpp>

#include <algorithm>
#include <cmath>

namespace plugrad::conformance {
namespace {

struct WindowCase {
  Shape x, window;  // spatial extents
  int64_t stride, padding, dilation;
};

// The windows of a convolution, with the numbers of images, of groups, and of channels and results of each group.
struct Convolution {
  WindowCase of;
  int64_t images, groups, channels, results;
};

const std::vector<Convolution>& convolutions() {
  static const std::vector<Convolution> list = {{{{1}, {1}, 1, 0, 1}, 1, 1, 1, 1},
                                                {{{9}, {3}, 1, 1, 1}, 2, 1, 3, 4},
                                                {{{40}, {5}, 2, 3, 2}, 3, 2, 2, 3},
                                                {{{5, 6}, {3, 2}, 1, 0, 1}, 2, 1, 3, 5},
                                                {{{4, 7}, {3, 3}, 1, 1, 1}, 5, 1, 2, 9},
                                                {{{7, 5}, {3, 3}, 2, 1, 1}, 2, 1, 4, 3},
                                                {{{8, 9}, {2, 3}, 1, 2, 2}, 1, 3, 2, 1},
                                                {{{6, 6}, {3, 3}, 1, 1, 1}, 2, 5, 1, 1},
                                                {{{6, 5}, {1, 1}, 1, 0, 1}, 3, 1, 7, 6},
                                                {{{5, 5}, {1, 1}, 2, 0, 1}, 2, 1, 3, 2},
                                                {{{6, 6}, {2, 2}, 3, 0, 1}, 1, 1, 2, 2},
                                                {{{2, 2}, {2, 2}, 1, 0, 1}, 4, 1, 3, 2},
                                                {{{3, 3}, {2, 2}, 1, 3, 1}, 1, 1, 1, 2},
                                                {{{3, 2}, {3, 3}, 5, 2, 1}, 2, 1, 2, 2},
                                                {{{3, 4, 5}, {2, 2, 3}, 1, 1, 1}, 1, 1, 2, 3},
                                                {{{4, 3, 5}, {2, 1, 3}, 2, 1, 2}, 2, 2, 1, 2},
                                                {{{14, 14}, {3, 3}, 1, 1, 1}, 2, 1, 9, 20},
                                                {{{33, 70}, {3, 3}, 1, 1, 1}, 1, 1, 2, 3},
                                                {{{12, 12}, {5, 5}, 2, 2, 1}, 3, 1, 70, 7},
                                                {{{3, 3}, {2, 2}, 1, 0, 1}, 1, 1, 130, 3},
                                                {{{5, 7}, {3, 3}, 1, 1, 1}, 1, 1, 20, 35},
                                                {{{6, 5}, {3, 3}, 2, 1, 1}, 2, 20, 1, 1},
                                                {{{3, 2}, {2, 2}, 1, 0, 1}, 21, 1, 1, 1},
                                                {{{370, 360}, {2, 2}, 1, 0, 1}, 1, 1, 2, 1}};  // larger than a cache
  return list;
}

struct Pooling {
  WindowCase of;
  int64_t images, channels;
};
const std::vector<Pooling>& poolings() {
  static const std::vector<Pooling> list = {{{{1}, {1}, 1, 0, 1}, 1, 1},
                                            {{{9}, {3}, 2, 1, 1}, 2, 3},
                                            {{{6, 8}, {2, 2}, 2, 0, 1}, 2, 3},
                                            {{{7, 9}, {2, 2}, 2, 0, 1}, 1, 2},
                                            {{{7, 7}, {3, 3}, 2, 1, 1}, 2, 2},
                                            {{{6, 5}, {3, 2}, 1, 1, 1}, 1, 3},
                                            {{{9, 8}, {2, 3}, 3, 1, 2}, 2, 1},
                                            {{{5, 9}, {2, 2}, 1, 0, 3}, 1, 2},
                                            {{{4, 5, 3}, {2, 2, 2}, 2, 1, 1}, 2, 2},
                                            {{{4, 4, 6}, {2, 2, 2}, 2, 0, 1}, 1, 2},
                                            {{{70, 90}, {2, 2}, 2, 0, 1}, 3, 2}};
  return list;
}

int64_t positions_of(const WindowCase& c, size_t axis) {
  return (c.x[axis] + 2 * c.padding - c.dilation * (c.window[axis] - 1) - 1) / c.stride + 1;
}
Shape with(int64_t first, int64_t second, const Shape& rest) {
  Shape shape{first, second};
  shape.insert(shape.end(), rest.begin(), rest.end());
  return shape;
}
Shape results_of(const WindowCase& c) {
  Shape shape;
  for (size_t i = 0; i < c.x.size(); ++i) shape.push_back(positions_of(c, i));
  return shape;
}
template <class A> void set_windows(A& attributes, const WindowCase& c) {
  for (size_t i = 0; i < c.x.size(); ++i) {
    attributes.stride[i] = c.stride;
    attributes.padding[i] = c.padding;
    attributes.dilation[i] = c.dilation;
  }
}

// The row-major index in an extent of `x` of element k of the window at `at`, or -1 if it lies in the padding.
template <class A> int64_t covered(const A& attributes, const Shape& x, const Shape& at, const Shape& k) {
  int64_t index = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t place = at[i] * attributes.stride[i] - attributes.padding[i] + k[i] * attributes.dilation[i];
    if (place < 0 || place >= x[i]) return -1;
    index = index * x[i] + place;
  }
  return index;
}

Shape spatial(const Array& array) { return Shape(array.shape().begin() + 2, array.shape().end()); }

// Calls visit(y, x, w) with the indices of the factors of all products.
template <class Visit>
void each_product(const Problem& problem, const Array& y, const Array& x, const Array& w, Visit visit) {
  const auto attributes = problem.attributes_as<plugrad_convolution>();
  const Shape ys = spatial(y), xs = spatial(x), ks = spatial(w);
  const int64_t results = y.shape()[1], channels = w.shape()[1], group = results / attributes.groups;
  Walk at(ys);
  for (int64_t p = 0; p < count_of(ys); ++p, at.next()) {
    Walk k(ks);
    for (int64_t q = 0; q < count_of(ks); ++q, k.next()) {
      const int64_t from = covered(attributes, xs, at.index(), k.index());
      if (from < 0) continue;
      for (int64_t n = 0; n < y.shape()[0]; ++n)
        for (int64_t o = 0; o < results; ++o)
          for (int64_t c = 0; c < channels; ++c)
            visit((n * results + o) * count_of(ys) + p, (n * x.shape()[1] + o / group * channels + c) * count_of(xs) + from,
                  (o * channels + c) * count_of(ks) + q);
    }
  }
}

void expect_sums(const Question& question, const std::vector<Sum>& sums, Expectations& expected) {
  for (size_t i = 0; i < sums.size(); ++i) {
    expected[0].elements[i] = sums[i].expected(question.out());
    if (!sums[i].terms()) expected[0].elements[i] = {0, 0, true, false};
  }
}

}  // namespace

std::vector<Problem> convolution_problems(const Question& question, Random& random) {
  std::vector<Problem> list;
  for (const Convolution& each : convolutions()) {
    const int64_t channels = each.groups * each.channels, results = each.groups * each.results;
    const Shape x = with(each.images, channels, each.of.x), w = with(results, each.channels, each.of.window);
    const Shape y = with(each.images, results, results_of(each.of));
    for (int kind = 0; kind < 2; ++kind) {
      Problem problem;
      problem.large = count_of(y) * each.channels * count_of(each.of.window) > 20000;
      if (problem.large && kind != 0) continue;
      const uint32_t op = question.op->opcode;
      const bool of_input = op == PLUGRAD_OP_CONVOLUTION_INPUT_GRAD, of_weight = op == PLUGRAD_OP_CONVOLUTION_WEIGHT_GRAD;
      problem.outputs.emplace_back(question.out(), of_input ? x : of_weight ? w : y);
      std::vector<Shape> inputs = of_input ? std::vector{y, w} : of_weight ? std::vector{y, x} : std::vector{x, w};
      if (op == PLUGRAD_OP_CONVOLUTION_BIAS) inputs.push_back({results});
      // Only the operand with zeros around it has special values: their product with a zero may be left out.
      const size_t special = of_weight ? 1 : 0;
      for (size_t i = 0; i < inputs.size(); ++i)
        problem.inputs.push_back(kind == 1 && i == special ? sprinkled_array(question.out(), inputs[i], {-2, 2}, 15, random)
                                                           : random_array(question.out(), inputs[i], {-2, 2}, random));
      plugrad_convolution attributes{sizeof attributes, 0, each.groups, {}, {}, {}};
      set_windows(attributes, each.of);
      problem.set_attributes(attributes);
      list.push_back(std::move(problem));
    }
  }
  return list;
}

void convolution_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const std::vector<double> x = problem.inputs[0].doubles(), w = problem.inputs[1].doubles();
  const Array& y = problem.outputs[0];
  std::vector<Sum> sums(static_cast<size_t>(y.count()));
  const int64_t plane = count_of(spatial(y)), results = y.shape()[1];
  for (int64_t i = 0; problem.inputs.size() == 3 && i < y.count(); ++i)
    sums[i].add(static_cast<double>(problem.inputs[2].get(i / plane % results)));
  each_product(problem, y, problem.inputs[0], problem.inputs[1],
               [&](int64_t to, int64_t from, int64_t by) { sums[to].add_product(x[from], w[by]); });
  expect_sums(question, sums, expected);
}

void convolution_input_grad_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const std::vector<double> grad = problem.inputs[0].doubles(), w = problem.inputs[1].doubles();
  std::vector<Sum> sums(static_cast<size_t>(problem.outputs[0].count()));
  each_product(problem, problem.inputs[0], problem.outputs[0], problem.inputs[1],
               [&](int64_t from, int64_t to, int64_t by) { sums[to].add_product(grad[from], w[by]); });
  expect_sums(question, sums, expected);
}

void convolution_weight_grad_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const std::vector<double> grad = problem.inputs[0].doubles(), x = problem.inputs[1].doubles();
  std::vector<Sum> sums(static_cast<size_t>(problem.outputs[0].count()));
  each_product(problem, problem.inputs[0], problem.inputs[1], problem.outputs[0],
               [&](int64_t from, int64_t by, int64_t to) { sums[to].add_product(grad[from], x[by]); });
  expect_sums(question, sums, expected);
}

// --- Pooling.

std::vector<Problem> max_pool_problems(const Question& question, Random& random) {
  std::vector<Problem> list;
  for (const Pooling& each : poolings())
    for (int kind = 0; kind < 3; ++kind) {
      const Shape x = with(each.images, each.channels, each.of.x), y = with(each.images, each.channels, results_of(each.of));
      Problem problem;
      problem.large = count_of(x) > 10000;
      problem.outputs.emplace_back(question.out(0), y);
      problem.outputs.emplace_back(question.out(1), y);
      if (kind == 0) problem.inputs.push_back(random_array(question.in(0), x, {-10, 10}, random));
      if (kind == 1) problem.inputs.push_back(sprinkled_array(question.in(0), x, {-3, 3}, 5, random));
      if (kind == 2) problem.inputs.push_back(mixed_array(question.in(0), x, {-10, 10}, random));
      Array& values = problem.inputs[0];
      for (int64_t i = 0; kind == 1 && i < values.count(); ++i) values.set(i, std::trunc(values.get(i)));  // ties
      plugrad_pool attributes{sizeof attributes, 0, {}, {}, {}, {}};
      set_windows(attributes, each.of);
      std::copy(each.of.window.begin(), each.of.window.end(), attributes.size);
      problem.set_attributes(attributes);
      list.push_back(std::move(problem));
    }
  return list;
}

void max_pool_reference(const Question&, const Problem& problem, Expectations& expected) {
  const Array &x = problem.inputs[0], &y = problem.outputs[0];
  const auto attributes = problem.attributes_as<plugrad_pool>();
  const Shape xs = spatial(x), ys = spatial(y), window(attributes.size, attributes.size + xs.size());
  for (int64_t i = 0; i < y.count();) {
    const int64_t plane = i / count_of(ys) * count_of(xs);
    Walk at(ys);
    for (int64_t p = 0; p < count_of(ys); ++p, ++i, at.next()) {
      long double best = 0;
      int64_t position = -1;
      Walk k(window);
      for (int64_t q = 0; q < count_of(window); ++q, k.next()) {
        const int64_t from = covered(attributes, xs, at.index(), k.index());
        if (from < 0 || std::isnan(best)) continue;  // the first NaN stays
        const long double value = x.get(plane + from);
        if (position >= 0 && !(value > best) && !std::isnan(value)) continue;
        best = value;
        position = from;
      }
      expected[0].elements[i].value = best;
      expected[1].elements[i].value = static_cast<long double>(position);
    }
  }
}

std::vector<Problem> max_pool_backward_problems(const Question& question, Random& random) {
  std::vector<Problem> list;
  for (const Pooling& each : poolings())
    for (int kind = 0; kind < 2; ++kind) {
      const Shape x = with(each.images, each.channels, each.of.x), y = with(each.images, each.channels, results_of(each.of));
      Problem problem;
      problem.large = count_of(x) > 10000;
      problem.outputs.emplace_back(question.out(), x);
      problem.inputs.push_back(kind == 0 ? random_array(question.in(0), y, {}, random)
                                         : sprinkled_array(question.in(0), y, {}, 15, random));
      problem.inputs.push_back(index_array(y, count_of(each.of.x), random));
      list.push_back(std::move(problem));
    }
  return list;
}

void max_pool_backward_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const Array &grad = problem.inputs[0], &index = problem.inputs[1], &x = problem.outputs[0];
  const int64_t plane = count_of(spatial(x)), each = count_of(spatial(grad));
  std::vector<Sum> sums(static_cast<size_t>(x.count()));
  for (int64_t i = 0; i < grad.count(); ++i) sums[i / each * plane + index.integer(i)].add(static_cast<double>(grad.get(i)));
  expect_sums(question, sums, expected);
}

}  // namespace plugrad::conformance
