#include <sdk/conformance/op_rows.hpp>

#include <algorithm>
#include <cmath>

namespace plugrad::conformance {
namespace {

struct Sorted {
  Shape shape;
  int32_t axis;
};

const std::vector<Sorted>& sorted() {
  static const std::vector<Sorted> list = {{{1}, 0},       {{2}, 0},       {{7}, 0},       {{100}, 0},
                                           {{5, 7}, 0},    {{5, 7}, 1},    {{1, 9}, 0},    {{9, 1}, 1},
                                           {{3, 4, 5}, 0}, {{3, 4, 5}, 1}, {{3, 4, 5}, 2}, {{2, 1, 2, 3, 1, 2, 2, 2}, 3},
                                           {{6000}, 0},    {{3, 1500}, 1}, {{1500, 3}, 0}, {{12, 1025}, 1}};
  return list;
}

// Whether y, which follows x in the line, belongs before x.
bool comes_before(long double y, long double x, bool descending) {
  if (descending) return std::isnan(y) ? !std::isnan(x) : y > x;
  return std::isnan(x) ? !std::isnan(y) : y < x;
}

// Sorts the indices by merging halves. Of equal elements, the element of the first half comes first.
std::vector<int64_t> merged(const Array& x, const std::vector<int64_t>& line, size_t from, size_t to, bool descending) {
  if (to - from == 1) return {static_cast<int64_t>(from)};
  const size_t middle = from + (to - from) / 2;
  const std::vector<int64_t> first = merged(x, line, from, middle, descending);
  const std::vector<int64_t> second = merged(x, line, middle, to, descending);
  std::vector<int64_t> all;
  for (size_t i = 0, j = 0; i < first.size() || j < second.size();) {
    const bool takes_second =
        i == first.size() || (j < second.size() && comes_before(x.get(line[second[j]]), x.get(line[first[i]]), descending));
    all.push_back(takes_second ? second[j++] : first[i++]);
  }
  return all;
}

}  // namespace

std::vector<Problem> argsort_problems(const Question& question, Random& random) {
  const uint8_t dtype = question.in(0);
  std::vector<Problem> list;
  for (const Sorted& each : sorted()) {
    for (int kind = 0; kind < 3; ++kind) {
      for (const uint32_t descending : {0u, 1u}) {
        Problem problem;
        problem.large = count_of(each.shape) > 10000;
        problem.outputs.emplace_back(question.out(), each.shape);
        if (kind == 0) problem.inputs.push_back(random_array(dtype, each.shape, {-1e4, 1e4}, random));
        if (kind == 1) problem.inputs.push_back(sprinkled_array(dtype, each.shape, {-3, 3}, 5, random));
        if (kind == 2) problem.inputs.push_back(mixed_array(dtype, each.shape, {-10, 10}, random));
        Array& x = problem.inputs[0];
        for (int64_t i = 0; kind == 1 && is_floating(dtype) && i < x.count(); ++i) x.set(i, std::trunc(x.get(i)));  // ties
        problem.set_attributes(plugrad_sort{sizeof(plugrad_sort), each.axis, descending});
        list.push_back(std::move(problem));
      }
    }
  }
  return list;
}

// The first of each line, some, or nearly all, in turn.
std::vector<Problem> topk_problems(const Question& question, Random& random) {
  std::vector<Problem> list = argsort_problems(question, random);
  for (size_t i = 0; i < list.size(); ++i) {
    const int32_t axis = list[i].attributes_as<plugrad_sort>().axis;
    Shape shape = list[i].inputs[0].shape();
    const int64_t length = shape[axis], counts[] = {1, length / 20, length - 1};
    shape[axis] = std::clamp<int64_t>(counts[(i + i / 6) % 3], std::min<int64_t>(length, 1), length);
    list[i].outputs.assign(1, Array(question.out(), shape));
  }
  return list;
}

// The output has as many indices along the axis as the op keeps.
void argsort_reference(const Question&, const Problem& problem, Expectations& expected) {
  const Array& x = problem.inputs[0];
  const auto sort = problem.attributes_as<plugrad_sort>();
  const Shape strides = row_major(x.shape()), out_strides = row_major(problem.outputs[0].shape());
  Shape outer = x.shape();
  outer[sort.axis] = 1;
  Walk walk(outer);
  std::vector<int64_t> line(x.shape()[sort.axis]);
  for (int64_t i = 0, n = count_of(outer); i < n; ++i, walk.next()) {
    for (size_t j = 0; j < line.size(); ++j)
      line[j] = dot(walk.index(), strides) + static_cast<int64_t>(j) * strides[sort.axis];
    const std::vector<int64_t> order = merged(x, line, 0, line.size(), sort.descending);
    for (int64_t j = 0; j < problem.outputs[0].shape()[sort.axis]; ++j)
      expected[0].elements[dot(walk.index(), out_strides) + j * out_strides[sort.axis]].value =
          static_cast<long double>(order[j]);
  }
}

}  // namespace plugrad::conformance
