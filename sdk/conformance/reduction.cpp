#include <sdk/conformance/op_rows.hpp>

#include <cmath>

namespace plugrad::conformance {
namespace {

// For each element of the input, in row-major order, calls visit(output element, input element, index among the reduced).
template <class Visit> void for_each_reduced(const Shape& input, const Shape& output, Visit visit) {
  const Shape strides = row_major(output);
  Walk walk(input);
  for (int64_t i = 0, n = count_of(input); i < n; ++i, walk.next()) {
    int64_t to = 0, within = 0;
    for (size_t axis = 0; axis < input.size(); ++axis) {
      if (output[axis] == input[axis]) to += walk.index()[axis] * strides[axis];
      else within = within * input[axis] + walk.index()[axis];
    }
    visit(to, i, within);
  }
}

struct Reduction {
  Shape input;
  uint32_t axes;  // the reduced axes, a bit each
};

std::vector<Reduction> reductions() {
  std::vector<Reduction> list = {{{}, 0},
                                 {{1}, 1},
                                 {{2}, 1},
                                 {{7}, 1},
                                 {{16}, 1},
                                 {{33}, 1},
                                 {{1000}, 1},
                                 {{4096}, 1},
                                 {{2, 1, 2, 3, 1, 2, 2, 2}, 0b10101010},
                                 {{2, 1, 2, 3, 1, 2, 2, 2}, 0b01011001},
                                 {{1, 9}, 0b11},
                                 {{9, 1}, 0b01},
                                 {{37, 65}, 0b10},
                                 {{37, 65}, 0b01},
                                 {{3, 4, 5, 2}, 0b0110},
                                 {{2, 70, 3}, 0b010},
                                 {{257, 301}, 0b01},
                                 {{257, 301}, 0b10},
                                 {{257, 301}, 0b11},
                                 {{100003}, 1},
                                 {{2, 70001}, 0b10}};
  for (uint32_t axes = 0; axes < 4; ++axes) list.push_back({{5, 7}, axes});
  for (uint32_t axes = 0; axes < 8; ++axes) list.push_back({{4, 3, 6}, axes});
  return list;
}

Shape reduced(const Reduction& reduction) {
  Shape shape = reduction.input;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (reduction.axes >> axis & 1) shape[axis] = 1;
  return shape;
}

// NaN wins against every value, for MAX and MIN.
bool beats(long double value, long double best, bool largest) {
  if (std::isnan(best)) return false;
  return std::isnan(value) || (largest ? value > best : value < best);
}

}  // namespace

std::vector<Problem> reduction_problems(const Question& question, Random& random) {
  const uint8_t dtype = question.in(0);
  const bool ties = question.op->opcode == PLUGRAD_OP_ARGMAX;
  std::vector<Problem> list;
  for (const Reduction& reduction : reductions()) {
    for (int kind = 0; kind < 3; ++kind) {
      Problem problem;
      problem.large = count_of(reduction.input) > 10000;
      if (problem.large && kind != 0) continue;
      const Range range = ties ? Range{-4, 4} : Range{-10, 10};
      problem.outputs.emplace_back(question.out(), reduced(reduction));
      if (kind == 0) problem.inputs.push_back(random_array(dtype, reduction.input, range, random));
      if (kind == 1) problem.inputs.push_back(sprinkled_array(dtype, reduction.input, range, 40, random));
      if (kind == 2) problem.inputs.push_back(mixed_array(dtype, reduction.input, range, random));
      Array& x = problem.inputs[0];
      for (int64_t i = 0; ties && kind == 0 && is_floating(dtype) && i < x.count(); ++i) x.set(i, std::trunc(x.get(i)));
      list.push_back(std::move(problem));
    }
  }
  return list;
}

void sum_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const Array &x = problem.inputs[0], &before = problem.outputs[0];
  std::vector<Expected>& elements = expected[0].elements;
  if (is_floating(question.out())) {
    std::vector<Sum> sums(elements.size());
    for_each_reduced(x.shape(), before.shape(),
                     [&](int64_t to, int64_t i, int64_t) { sums[to].add(static_cast<double>(x.get(i))); });
    for (size_t i = 0; i < sums.size(); ++i) {
      if (question.accumulates()) sums[i].add(static_cast<double>(before.get(i)));
      elements[i] = sums[i].expected(question.out());
    }
    return;
  }
  std::vector<uint64_t> sums(elements.size(), 0);
  for_each_reduced(x.shape(), before.shape(), [&](int64_t to, int64_t i, int64_t) { sums[to] += x.integer(i); });
  for (size_t i = 0; i < sums.size(); ++i) {
    if (question.accumulates()) sums[i] += before.integer(i);
    elements[i].value = static_cast<long double>(static_cast<int64_t>(sums[i]));
  }
}

void extreme_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const bool largest = question.op->opcode == PLUGRAD_OP_MAX;
  const Array& x = problem.inputs[0];
  for_each_reduced(x.shape(), problem.outputs[0].shape(), [&](int64_t to, int64_t i, int64_t within) {
    Expected& e = expected[0].elements[to];
    e.any_zero_sign = true;
    if (within == 0 || beats(x.get(i), e.value, largest)) e.value = x.get(i);
  });
}

void argmax_reference(const Question&, const Problem& problem, Expectations& expected) {
  const Array& x = problem.inputs[0];
  std::vector<long double> best(expected[0].elements.size());
  for_each_reduced(x.shape(), problem.outputs[0].shape(), [&](int64_t to, int64_t i, int64_t within) {
    if (within != 0 && !beats(x.get(i), best[to], true)) return;
    best[to] = x.get(i);
    expected[0].elements[to].value = static_cast<long double>(within);
  });
}

}  // namespace plugrad::conformance
