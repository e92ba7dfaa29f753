#include <sdk/conformance/op_rows.hpp>

#include <cmath>

namespace plugrad::conformance {
namespace {

struct Sizes {
  int64_t m, n, k, group;
};
// Groups of one vector of any processor and of less; groups whose length no vector divides; one group for a row; depths and
// widths around the tiles of kernels.
constexpr Sizes kSizes[] = {{1, 1, 16, 16},    {1, 5, 64, 32},     {3, 4, 96, 48},    {1, 33, 576, 64},  {2, 17, 160, 16},
                            {5, 9, 256, 128},  {1, 12, 1536, 512}, {4, 70, 192, 192}, {33, 65, 288, 32}, {9, 40, 80, 80},
                            {70, 75, 128, 32}, {1, 300, 2080, 32}, {17, 130, 576, 64}};
constexpr int64_t kLarge = 20000;     // products
constexpr double kChange = 0x1p-110;  // of an element of x

// The scale and the minimum of each group, or its scale alone.
Array random_scales(uint8_t dtype, const Shape& shape, Random& random) {
  Array scales(dtype, shape);
  for (int64_t i = 0; i < scales.count(); ++i) {
    const bool is_minimum = shape.back() == 2 && i % 2;
    scales.set(i, is_minimum ? random.uniform(-1, 0.5) : random.uniform(-0.05, 0.1));
  }
  return scales;
}

// The code of element j of a row.
int64_t code_of(const Array& codes, int64_t row, int64_t j, int64_t bits) {
  const int64_t byte = codes.integer(row * codes.shape()[1] + j * bits / 8);
  return byte >> j * bits % 8 & ((1 << bits) - 1);
}

// The factors of the terms of one element of the weight.
struct Weight {
  double of_code, minimum;
};
Weight weight_at(const Problem& problem, int64_t row, int64_t j) {
  const Array &codes = problem.inputs[1], &scales = problem.inputs[2];
  const int64_t k = problem.inputs[0].shape()[1], bits = codes.shape()[1] * 8 / k, groups = scales.shape()[1];
  const int64_t parts = scales.shape()[2], at = (row * groups + j * groups / k) * parts;
  const double scale = static_cast<double>(scales.get(at));
  return {scale * static_cast<double>(code_of(codes, row, j, bits)),
          parts == 2 ? static_cast<double>(scales.get(at + 1)) : -scale * static_cast<double>(int64_t{1} << (bits - 1))};
}

}  // namespace

std::vector<Problem> quantized_matmul_problems(const Question& question, Random& random) {
  std::vector<Problem> list;
  int64_t form = 0;
  for (const Sizes& s : kSizes) {
    for (const int64_t bits : {2, 4, 8}) {
      for (const int64_t parts : {1, 2}) {
        if (s.m * s.n * s.k > kLarge && ++form % 5) continue;  // the forms of a weight take turns with large problems
        const auto scale_dtype = static_cast<uint8_t>(random.one_in(2) ? PLUGRAD_F16 : PLUGRAD_F32);
        Problem problem;
        problem.large = s.m * s.n * s.k > kLarge;
        problem.outputs.emplace_back(question.out(), Shape{s.m, s.n});
        problem.inputs.push_back(list.size() % 3 ? random_array(question.in(0), {s.m, s.k}, {-2, 2}, random)
                                                 : sprinkled_array(question.in(0), {s.m, s.k}, {-2, 2}, 400, random));
        problem.inputs.push_back(random_array(PLUGRAD_U8, {s.n, s.k * bits / 8}, {0, 255}, random));
        problem.inputs.push_back(random_scales(scale_dtype, {s.n, s.k / s.group, parts}, random));
        list.push_back(std::move(problem));
      }
    }
  }
  return list;
}

void quantized_matmul_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const std::vector<double> x = problem.inputs[0].doubles();
  const int64_t k = problem.inputs[0].shape()[1], n = problem.outputs[0].shape()[1], m = problem.outputs[0].shape()[0];
  std::vector<Weight> weights(static_cast<size_t>(k));
  for (int64_t column = 0; column < n; ++column) {
    for (int64_t j = 0; j < k; ++j) weights[static_cast<size_t>(j)] = weight_at(problem, column, j);
    for (int64_t row = 0; row < m; ++row) {
      Sum sum;
      long double changed = 0;
      bool overflows = false, is_nan = false;
      for (int64_t j = 0; j < k; ++j) {
        const double factor = x[static_cast<size_t>(row * k + j)];
        const Weight& weight = weights[static_cast<size_t>(j)];
        sum.add_product(factor, weight.of_code);
        sum.add_product(factor, weight.minimum);
        changed += std::fabs(weight.of_code + weight.minimum) * kChange;
        overflows |= std::isinf(factor) || std::fabs(factor) > 0x1p100;
        is_nan |= std::isnan(factor);
      }
      Expected& e = expected[0].elements[row * n + column] = sum.expected(question.out());
      e.bound += changed;
      e.unspecified |= overflows && !is_nan;
    }
  }
}

std::vector<Problem> integer_matmul_problems(const Question& question, Random& random) {
  constexpr int64_t kShapes[][3] = {{1, 1, 1},   {2, 3, 5},    {1, 64, 33},   {7, 65, 64},   {33, 130, 70},
                                    {6, 16, 17}, {5, 1027, 9}, {64, 96, 130}, {3, 5000, 65}, {100, 20, 300}};
  std::vector<Problem> list;
  for (const auto& [m, k, n] : kShapes) {
    for (const bool extreme : {false, true}) {
      Problem problem;
      problem.large = m * k * n > kLarge;
      problem.outputs.emplace_back(question.out(), Shape{m, n});
      problem.inputs.push_back(random_array(question.in(0), {m, k}, {-128, 255}, random));
      problem.inputs.push_back(random_array(PLUGRAD_I8, {k, n}, {-128, 127}, random));
      // The largest products: sums of two of them do not fit 16 bits.
      for (int64_t i = 0; extreme && i < problem.inputs[0].count(); ++i)
        problem.inputs[0].set(i, question.in(0) == PLUGRAD_U8 ? 255 : -128);
      for (int64_t i = 0; extreme && i < problem.inputs[1].count(); ++i) problem.inputs[1].set(i, i % n % 2 ? 127 : -128);
      list.push_back(std::move(problem));
    }
  }
  return list;
}

void integer_matmul_reference(const Question&, const Problem& problem, Expectations& expected) {
  const int64_t k = problem.inputs[0].shape()[1], n = problem.outputs[0].shape()[1];
  for (int64_t i = 0; i < problem.outputs[0].count(); ++i) {
    int64_t sum = 0;
    for (int64_t j = 0; j < k; ++j)
      sum += problem.inputs[0].integer(i / n * k + j) * problem.inputs[1].integer(j * n + i % n);
    expected[0].elements[i].value = wrapped(PLUGRAD_I32, sum);
  }
}

}  // namespace plugrad::conformance
