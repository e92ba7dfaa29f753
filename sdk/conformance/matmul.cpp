#include <sdk/conformance/op_rows.hpp>

#include <algorithm>
#include <cmath>

namespace plugrad::conformance {
namespace {

constexpr long double kTf32Epsilon = 0x1p-10L;  // inputs keep 10 bits of mantissa

struct Product {
  Shape batch;
  int64_t m, k, n;
};

const std::vector<Product>& products() {
  static const std::vector<Product> list = {{{}, 1, 1, 1},     {{}, 1, 7, 1},
                                            {{}, 2, 3, 4},     {{}, 5, 7, 3},
                                            {{}, 1, 64, 33},   {{}, 33, 64, 1},
                                            {{}, 16, 1, 9},    {{}, 16, 16, 16},
                                            {{}, 33, 17, 65},  {{3}, 4, 5, 6},
                                            {{2, 3}, 3, 4, 5}, {{1, 2, 1}, 4, 9, 2},
                                            {{1}, 8, 3, 8},    {{2, 1, 2, 1, 1, 2}, 2, 3, 2},
                                            {{}, 2, 5000, 3},  {{4}, 40, 30, 20},
                                            {{}, 130, 75, 90}};
  return list;
}

Shape with(const Shape& batch, int64_t rows, int64_t columns) {
  Shape shape = batch;
  shape.insert(shape.end(), {rows, columns});
  return shape;
}

}  // namespace

std::vector<Problem> matmul_problems(const Question& question, Random& random) {
  std::vector<Problem> list;
  for (const Product& p : products()) {
    for (int kind = 0; kind < 2; ++kind) {
      Problem problem;
      problem.large = count_of(p.batch) * p.m * p.k * p.n > 20000;
      if (problem.large && kind != 0) continue;
      problem.outputs.emplace_back(question.out(), with(p.batch, p.m, p.n));
      for (const Shape& shape : {with(p.batch, p.m, p.k), with(p.batch, p.k, p.n)})
        problem.inputs.push_back(kind == 0 ? random_array(question.out(), shape, {-2, 2}, random)
                                           : sprinkled_array(question.out(), shape, {-2, 2}, 15, random));
      list.push_back(std::move(problem));
    }
  }
  return list;
}

void matmul_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const Shape& left = problem.inputs[0].shape();
  const int64_t m = left[left.size() - 2], k = left.back(), n = problem.inputs[1].shape().back();
  const std::vector<double> a = problem.inputs[0].doubles(), b = problem.inputs[1].doubles();
  for (int64_t i = 0; i < problem.outputs[0].count(); ++i) {
    const int64_t batch = i / (m * n), row = i / n % m, column = i % n;
    Sum sum;
    for (int64_t j = 0; j < k; ++j) sum.add_product(a[(batch * m + row) * k + j], b[(batch * k + j) * n + column]);
    if (question.accumulates()) sum.add(static_cast<double>(problem.outputs[0].get(i)));
    Expected& e = expected[0].elements[i] = sum.expected(question.out());
    if (question.flags & PLUGRAD_TF32) e.bound += 2 * kTf32Epsilon * sum.magnitude();
  }
}

}  // namespace plugrad::conformance
