// Compares statistics over axes with plain loops.
#include <tests/core/expect.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace plugrad::test {
namespace {
constexpr double kInf = HUGE_VAL;

double mean_of(const std::vector<double>& all) {
  double total = 0;
  for (double each : all) total += each;
  return total / static_cast<double>(all.size());
}
double variance_of(const std::vector<double>& all, double correction) {
  double total = 0;
  for (double each : all) total += (each - mean_of(all)) * (each - mean_of(all));
  return total / (static_cast<double>(all.size()) - correction);
}
double norm_of(const std::vector<double>& all, double p) {
  double total = 0;
  for (double each : all) total += std::pow(std::abs(each), p);
  return std::pow(total, 1 / p);
}

struct Row {
  const char* name;
  Tensor (*apply)(const Tensor& x, const Shape& axes, bool keepdim);
  double (*expected)(const std::vector<double>& elements);
};
using Elements = const std::vector<double>&;
const Row kRows[] = {
    {"logsumexp", [](const Tensor& x, const Shape& axes, bool kept) { return logsumexp(x, axes, kept); },
     [](Elements all) {
       double total = 0;
       for (double each : all) total += std::exp(each);
       return std::log(total);
     }},
    {"argmin", [](const Tensor& x, const Shape& axes, bool kept) { return argmin(x, axes, kept); },
     [](Elements all) { return static_cast<double>(std::ranges::min_element(all) - all.begin()); }},
    {"prod", [](const Tensor& x, const Shape& axes, bool kept) { return prod(x, axes, kept); },
     [](Elements all) {
       double product = 1;
       for (double each : all) product *= each;
       return product;
     }},
    {"var", [](const Tensor& x, const Shape& axes, bool kept) { return var(x, axes, kept); },
     [](Elements all) { return variance_of(all, 1); }},
    {"var of all", [](const Tensor& x, const Shape& axes, bool kept) { return var(x, axes, kept, 0); },
     [](Elements all) { return variance_of(all, 0); }},
    {"stddev", [](const Tensor& x, const Shape& axes, bool kept) { return stddev(x, axes, kept, 1); },
     [](Elements all) { return std::sqrt(variance_of(all, 1)); }},
    {"norm", [](const Tensor& x, const Shape& axes, bool kept) { return norm(x, 2, axes, kept); },
     [](Elements all) { return norm_of(all, 2); }},
    {"norm 1", [](const Tensor& x, const Shape& axes, bool kept) { return norm(x, 1, axes, kept); },
     [](Elements all) { return norm_of(all, 1); }},
    {"norm 3", [](const Tensor& x, const Shape& axes, bool kept) { return norm(x, 3, axes, kept); },
     [](Elements all) { return norm_of(all, 3); }},
    {"norm -1", [](const Tensor& x, const Shape& axes, bool kept) { return norm(x, -1, axes, kept); },
     [](Elements all) { return norm_of(all, -1); }},
    {"norm inf", [](const Tensor& x, const Shape& axes, bool kept) { return norm(x, kInf, axes, kept); },
     [](Elements all) { return std::max(std::ranges::max(all), -std::ranges::min(all)); }},
};

// The elements from which each element of the result is computed, in order.
std::vector<std::vector<double>> groups(const std::vector<double>& values, const Shape& shape, const Shape& kept) {
  std::vector<std::vector<double>> all(static_cast<size_t>(kept.count()));
  for (const Shape& at : positions(shape))
    all[static_cast<size_t>(offset(within(at, kept), kept))].push_back(values[static_cast<size_t>(offset(at, shape))]);
  return all;
}

TEST(Statistics, EqualPlainLoops) {
  const Shape shape = {2, 3, 4};
  const std::vector<double> values = spread(24, -1.5, 2);
  for (const Row& row : kRows)
    for (const Shape& axes : {Shape{}, Shape{0}, Shape{-1}, Shape{1, -3}, Shape{2, 1}}) {
      Shape kept = shape, left;
      for (int64_t axis : axes.empty() ? Shape{0, 1, 2} : axes) kept[static_cast<size_t>((axis + 3) % 3)] = 1;
      for (int64_t extent : kept)
        if (extent != 1) left.push_back(extent);
      std::vector<double> expected;
      for (const auto& group : groups(values, shape, kept)) expected.push_back(row.expected(group));
      const Tensor strided = transpose(contiguous(transpose(f64(values, shape), 0, 2)), 0, 2);
      EXPECT_TRUE(close(row.apply(f64(values, shape), axes, true), kept, expected, 1e-13)) << row.name << axes;
      EXPECT_TRUE(close(row.apply(strided, axes, false), left, expected, 1e-13)) << row.name << axes;
      EXPECT_TRUE(close(row.apply(of(DType::f32, values, shape), axes, false), left, expected, 1e-5)) << row.name << axes;
    }
}

TEST(Statistics, OfOneElementAndOfNone) {
  const Tensor one = f64({-3}, {});
  EXPECT_TRUE(close(logsumexp(one), {}, {-3}));
  EXPECT_TRUE(close(argmin(one), {}, {0}));
  EXPECT_TRUE(close(prod(one), {}, {-3}));
  EXPECT_TRUE(close(var(one, {}, false, 0), {}, {0}));
  EXPECT_TRUE(close(var(one), {}, {std::nan("")}));
  EXPECT_TRUE(close(stddev(one, {}, true, 0), {}, {0}));
  EXPECT_TRUE(close(norm(one), {}, {3}));
  const Tensor none = zeros({2, 0}, DType::f64);
  EXPECT_TRUE(close(logsumexp(none, {1}), {2}, {-kInf, -kInf}));
  EXPECT_TRUE(close(prod(none, {1}, true), {2, 1}, {1, 1}));
  EXPECT_TRUE(close(prod(none, {0}), {0}, {}));
  EXPECT_TRUE(close(norm(none, 2, {-1}), {2}, {0, 0}));
  EXPECT_TRUE(throws(Code::invalid, {"[argmin]", "(2, 0)"}, [&] { argmin(none, {1}); }));
}

TEST(Statistics, ExtremeElements) {
  EXPECT_TRUE(close(logsumexp(f64({1000, 1000})), {}, {1000 + std::log(2.0)}, 1e-15));
  EXPECT_TRUE(close(logsumexp(f64({-kInf, -kInf})), {}, {-kInf}));
  EXPECT_TRUE(close(logsumexp(f64({-kInf, 2, kInf})), {}, {kInf}));
  EXPECT_TRUE(close(argmin(i64({5, INT64_MIN, INT64_MAX})), {}, {1}));
  EXPECT_TRUE(close(argmin(f64({2, -1, -1})), {}, {1}));
  EXPECT_EQ(prod(of(DType::i32, {3, 4}, {2})).dtype(), DType::i64);
  EXPECT_TRUE(close(prod(of(DType::boolean, {1, 0}, {2})), {}, {0}));
  EXPECT_TRUE(close(prod(of(DType::f16, {300, 300, 0.125, 0}, {4})), {}, {0}));
  EXPECT_TRUE(close(norm(f64({0, 3, 0, -4}), 0), {}, {2}));
  EXPECT_TRUE(close(norm(f64({0, 3}), -1), {}, {0}));
}

struct Kink {
  const char* name;
  Tensor (*apply)(const Tensor& x);
  std::vector<double> x, gradient;
};

TEST(Statistics, GradientsAtKinks) {
  const Kink kinks[] = {
      {"prod with a zero", [](const Tensor& x) { return prod(x); }, {2, 0, 3}, {0, 6, 0}},
      {"prod with two zeros", [](const Tensor& x) { return prod(x); }, {0, 0, 3}, {0, 0, 0}},
      {"stddev of equal", [](const Tensor& x) { return stddev(x); }, {2, 2}, {0, 0}},
      {"norm of 0", [](const Tensor& x) { return norm(x); }, {0, 0}, {0, 0}},
      {"norm 3 of 0", [](const Tensor& x) { return norm(x, 3); }, {0, 0}, {0, 0}},
      {"norm 1 at 0", [](const Tensor& x) { return norm(x, 1); }, {0, -2}, {0, -1}},
      {"norm 0.5 at 0", [](const Tensor& x) { return norm(x, 0.5); }, {0, 4}, {0, 1}},
  };
  for (bool create_graph : {false, true})
    for (const Kink& each : kinks) {
      const Tensor x = f64(each.x).requires_grad_();
      const Tensor gradient = grad({each.apply(x)}, {x}, {.create_graph = create_graph})[0];
      EXPECT_TRUE(close(gradient, x.shape(), each.gradient, 1e-14)) << each.name;
    }
}

TEST(Statistics, ErrorsNameTheFunction) {
  EXPECT_TRUE(throws(Code::invalid, {"[var]", "i64"}, [] { var(i64({1})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[logsumexp]", "twice"}, [] { logsumexp(f64({1, 2}, {1, 2}), {0, -2}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[norm]", "i64"}, [] { norm(i64({1})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[prod]", "axis 1"}, [] { prod(f64({1}), {1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[argmin]", "bool"}, [] { argmin(of(DType::boolean, {1}, {1})); }));
}

}  // namespace
}  // namespace plugrad::test
