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
  static const std::vector<Product> list = {{{}, 1, 1, 1},      {{}, 1, 7, 1},
                                            {{}, 2, 3, 4},      {{}, 5, 7, 3},
                                            {{}, 1, 64, 33},    {{}, 33, 64, 1},
                                            {{}, 16, 1, 9},     {{}, 16, 16, 16},
                                            {{}, 33, 17, 65},   {{3}, 4, 5, 6},
                                            {{2, 3}, 3, 4, 5},  {{1, 2, 1}, 4, 9, 2},
                                            {{1}, 8, 3, 8},     {{2, 1, 2, 1, 1, 2}, 2, 3, 2},
                                            {{}, 2, 5000, 3},   {{4}, 40, 30, 20},
                                            {{}, 130, 75, 90},  {{}, 32, 64, 32},
                                            {{}, 17, 33, 49},   {{}, 70, 96, 3},
                                            {{}, 5, 1600, 40},  {{}, 40, 4100, 24},
                                            {{2}, 8, 2, 600},   {{3}, 33, 31, 16},
                                            {{}, 300, 20, 130}, {{}, 7, 40, 1100}};
  return list;
}

// The possible change of a sum of products when numbers below 2^-126 count as 0, which ops.md allows in bf16. With TF32,
// too, such a small factor may be rounded to 0, and an infinity times it is then NaN; a factor near the largest number may
// be rounded to infinity.
class Flushing {
 public:
  void add_product(double a, double b) {
    const bool flushed = std::fabs(a) < kLeastNormal || std::fabs(b) < kLeastNormal;
    bound_ += kLeastNormal;
    if (!flushed) return;
    if (std::isinf(a * b)) unspecified_ = true;
    else if (!std::isnan(a * b)) bound_ += std::fabs(static_cast<long double>(a) * b);
  }
  void widen(Expected& e) const {
    e.bound += bound_ + kLeastNormal;
    e.any_zero_sign = true;
    permit(e);
  }
  // Called beside add_product, with TF32.
  void add_rounded(double a, double b) {
    const auto overflows = [](double x) { return std::isfinite(x) && std::fabs(x) >= kLeastToInfinity; };
    unspecified_ |= overflows(a) || overflows(b);
  }
  void permit(Expected& e) const { e.unspecified = e.unspecified || unspecified_; }

 private:
  static constexpr double kLeastNormal = 0x1p-126, kLeastToInfinity = 0x1.ffep127;
  long double bound_ = 0;
  bool unspecified_ = false;
};

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
      if (question.op->inputs == 3)
        problem.inputs.push_back(random_array(question.out(), problem.outputs[0].shape(), {-2, 2}, random));
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
    Flushing flushing;
    for (int64_t j = 0; j < k; ++j) {
      const double left = a[(batch * m + row) * k + j], right = b[(batch * k + j) * n + column];
      sum.add_product(left, right);
      flushing.add_product(left, right);
      if (question.flags & PLUGRAD_TF32) flushing.add_rounded(left, right);
    }
    if (question.op->inputs == 3) sum.add(problem.inputs[2].get(i));
    if (question.accumulates()) sum.add(static_cast<double>(problem.outputs[0].get(i)));
    Expected& e = expected[0].elements[i] = sum.expected(question.out());
    if (problem.outputs[0].dtype() == PLUGRAD_BF16) flushing.widen(e);
    if (question.flags & PLUGRAD_TF32) {
      e.bound += 2 * kTf32Epsilon * sum.magnitude();
      flushing.permit(e);
    }
  }
}

}  // namespace plugrad::conformance
