#include <sdk/conformance/op_rows.hpp>

#include <cmath>

namespace plugrad::conformance {
namespace {

struct Lookup {
  Shape index;
  int32_t axis;
  int64_t extent;  // of the indexed operand along the axis
};

const std::vector<Lookup>& lookups() {
  static const std::vector<Lookup> list = {{{1}, 0, 1},
                                           {{7}, 0, 4},
                                           {{100}, 0, 9},
                                           {{5, 7}, 0, 3},
                                           {{5, 7}, 1, 11},
                                           {{1, 9}, 0, 20},
                                           {{9, 1}, 1, 20},
                                           {{3, 4, 5}, 0, 6},
                                           {{3, 4, 5}, 1, 2},
                                           {{3, 4, 5}, 2, 17},
                                           {{2, 1, 2, 3, 1, 2, 2, 2}, 3, 5},
                                           {{64, 33}, 0, 128},
                                           {{33, 64}, 1, 10},
                                           {{300, 101}, 0, 70}};
  return list;
}

Shape with_extent(Shape shape, int32_t axis, int64_t extent) {
  shape[axis] = extent;
  return shape;
}

// For each element i of the index array, calls visit(i, offset of the selected element in an array of the shape `other`).
template <class Visit> void for_each_lookup(const Problem& problem, const Array& index, const Shape& other, Visit visit) {
  const auto axis = problem.attributes_as<plugrad_axis>().axis;
  const Shape strides = row_major(other);
  Walk walk(index.shape());
  for (int64_t i = 0; i < index.count(); ++i, walk.next()) {
    Shape at = walk.index();
    at[axis] = index.integer(i);
    visit(i, dot(at, strides));
  }
}

}  // namespace

std::vector<Problem> gather_problems(const Question& question, Random& random) {
  std::vector<Problem> list;
  for (const Lookup& l : lookups()) {
    Problem problem;
    problem.large = count_of(l.index) > 10000;
    problem.outputs.emplace_back(question.out(), l.index);
    problem.inputs.push_back(mixed_array(question.in(0), with_extent(l.index, l.axis, l.extent), {}, random));
    problem.inputs.push_back(index_array(l.index, l.extent, random));
    problem.set_attributes(plugrad_axis{sizeof(plugrad_axis), l.axis});
    list.push_back(std::move(problem));
  }
  return list;
}

void gather_reference(const Question&, const Problem& problem, Expectations& expected) {
  const Array& x = problem.inputs[0];
  for_each_lookup(problem, problem.inputs[1], x.shape(),
                  [&](int64_t i, int64_t from) { expected[0].elements[i].value = x.get(from); });
}

std::vector<Problem> scatter_add_problems(const Question& question, Random& random) {
  std::vector<Problem> list;
  for (const Lookup& l : lookups()) {
    for (int kind = 0; kind < 2; ++kind) {
      Problem problem;
      problem.large = count_of(l.index) > 10000;
      if (problem.large && kind != 0) continue;
      problem.outputs.push_back(random_array(question.out(), with_extent(l.index, l.axis, l.extent), {}, random));
      problem.inputs.push_back(index_array(l.index, l.extent, random));
      problem.inputs.push_back(kind == 0 ? random_array(question.in(1), l.index, {}, random)
                                         : sprinkled_array(question.in(1), l.index, {}, 15, random));
      problem.set_attributes(plugrad_axis{sizeof(plugrad_axis), l.axis});
      list.push_back(std::move(problem));
    }
  }
  return list;
}

namespace {
// before: the array to which the sources are added.
void sums_reference(const Question& question, const Problem& problem, const Array& before, Expectations& expected) {
  const Array& source = problem.inputs[1];
  if (!is_floating(question.out())) {
    std::vector<uint64_t> sums(before.count());
    for (int64_t i = 0; i < before.count(); ++i) sums[i] = before.integer(i);
    for_each_lookup(problem, problem.inputs[0], before.shape(),
                    [&](int64_t i, int64_t to) { sums[to] += source.integer(i); });
    for (int64_t i = 0; i < before.count(); ++i)
      expected[0].elements[i].value = static_cast<long double>(wrapped(question.out(), static_cast<int64_t>(sums[i])));
    return;
  }
  std::vector<Sum> sums(before.count());
  for (int64_t i = 0; i < before.count(); ++i) sums[i].add(static_cast<double>(before.get(i)));
  for_each_lookup(problem, problem.inputs[0], before.shape(),
                  [&](int64_t i, int64_t to) { sums[to].add(static_cast<double>(source.get(i))); });
  for (int64_t i = 0; i < before.count(); ++i) {
    expected[0].elements[i] = sums[i].rounded_each(problem.outputs[0].dtype());
    if (sums[i].terms() == 1) expected[0].elements[i] = {before.get(i), 0, false, false};  // the op added nothing to it
  }
}

}  // namespace

void scatter_add_reference(const Question& question, const Problem& problem, Expectations& expected) {
  sums_reference(question, problem, problem.outputs[0], expected);
}

// The previous contents of the output are random, too: the op overwrites them.
std::vector<Problem> scatter_sum_problems(const Question& question, Random& random) {
  return scatter_add_problems(question, random);
}

void scatter_sum_reference(const Question& question, const Problem& problem, Expectations& expected) {
  Array before(question.out(), problem.outputs[0].shape());
  for (int64_t i = 0; i < before.count(); ++i) before.set(i, 0);
  sums_reference(question, problem, before, expected);
}

}  // namespace plugrad::conformance
