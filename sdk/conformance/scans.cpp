#include <sdk/conformance/op_rows.hpp>

namespace plugrad::conformance {
namespace {

struct Scanned {
  Shape shape;
  int32_t axis;
};

const std::vector<Scanned>& scanned() {
  static const std::vector<Scanned> list = {{{1}, 0},       {{2}, 0},       {{15}, 0},      {{16}, 0},
                                            {{1000}, 0},    {{5, 7}, 0},    {{5, 7}, 1},    {{1, 9}, 0},
                                            {{9, 1}, 1},    {{3, 4, 5}, 0}, {{3, 4, 5}, 1}, {{3, 4, 5}, 2},
                                            {{300, 40}, 0}, {{6000}, 0},    {{3, 257}, 1},  {{2, 1, 2, 3, 1, 2, 2, 2}, 3},
                                            {{12, 1025}, 1}};
  return list;
}

// Of the elements of a line, in the order of their addition.
void expect_sums(const Question& question, const Array& x, const std::vector<int64_t>& line, Expectation& expected) {
  Sum sum;
  uint64_t whole = 0;
  for (const int64_t i : line) {
    if (is_floating(question.out())) {
      sum.add(static_cast<double>(x.get(i)));
      expected.elements[i] = sum.expected(question.out());
    } else {
      whole += static_cast<uint64_t>(x.integer(i));
      expected.elements[i].value = static_cast<long double>(static_cast<int64_t>(whole));
    }
  }
}

}  // namespace

std::vector<Problem> cumsum_problems(const Question& question, Random& random) {
  const uint8_t dtype = question.in(0);
  std::vector<Problem> list;
  for (const Scanned& each : scanned()) {
    for (int kind = 0; kind < 3; ++kind) {
      for (const uint32_t reverse : {0u, 1u}) {
        Problem problem;
        problem.large = count_of(each.shape) > 10000;
        problem.outputs.emplace_back(question.out(), each.shape);
        if (kind == 0) problem.inputs.push_back(random_array(dtype, each.shape, {-10, 10}, random));
        if (kind == 1) problem.inputs.push_back(sprinkled_array(dtype, each.shape, {-10, 10}, 40, random));
        if (kind == 2) problem.inputs.push_back(mixed_array(dtype, each.shape, {-10, 10}, random));
        problem.set_attributes(plugrad_scan{sizeof(plugrad_scan), each.axis, reverse});
        list.push_back(std::move(problem));
      }
    }
  }
  return list;
}

void cumsum_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const Array& x = problem.inputs[0];
  const auto scan = problem.attributes_as<plugrad_scan>();
  const Shape strides = row_major(x.shape());
  Shape outer = x.shape();
  outer[scan.axis] = 1;
  Walk walk(outer);
  std::vector<int64_t> line(x.shape()[scan.axis]);
  const int64_t n = static_cast<int64_t>(line.size());
  for (int64_t i = 0, lines = count_of(outer); i < lines; ++i, walk.next()) {
    for (int64_t j = 0; j < n; ++j)
      line[j] = dot(walk.index(), strides) + (scan.reverse ? n - 1 - j : j) * strides[scan.axis];
    expect_sums(question, x, line, expected[0]);
  }
}

}  // namespace plugrad::conformance
