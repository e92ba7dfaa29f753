// Compares reductions over every set of axes with plain loops.
#include <tests/core/expect.hpp>

#include <cmath>
#include <limits>

namespace plugrad::test {
namespace {
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

Shape axes_of(unsigned mask, int rank) {
  Shape axes;
  for (int i = 0; i < rank; ++i)
    if (mask >> i & 1) axes.push_back(i % 2 ? i : i - rank);
  return axes;
}

Shape reduced(const Shape& shape, unsigned mask, bool keepdim) {
  Shape out;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!(mask >> i & 1)) out.push_back(shape[static_cast<size_t>(i)]);
    else if (keepdim) out.push_back(1);
  }
  return out;
}

// The input elements of each element of the result, in row-major order.
std::vector<std::vector<double>> groups(const std::vector<double>& values, const Shape& shape, unsigned mask) {
  const Shape kept = reduced(shape, mask, true);
  std::vector<std::vector<double>> all(static_cast<size_t>(kept.count()));
  size_t i = 0;
  for (const Shape& at : positions(shape)) all[static_cast<size_t>(offset(within(at, kept), kept))].push_back(values[i++]);
  return all;
}

double sum_of(const std::vector<double>& x) {
  double total = 0;
  for (double each : x) total += each;
  return total;
}
double argmax_of(const std::vector<double>& x) {
  size_t best = 0;
  for (size_t i = 1; i < x.size(); ++i)
    if (!std::isnan(x[best]) && (std::isnan(x[i]) || x[i] > x[best])) best = i;
  return static_cast<double>(best);
}
double max_of(const std::vector<double>& x) { return x[static_cast<size_t>(argmax_of(x))]; }
double min_of(std::vector<double> x) {
  for (double& each : x) each = -each;
  return -max_of(x);
}

struct ReductionRow {
  const char* name;
  Tensor (*apply)(const Tensor& x, const Shape& axes, bool keepdim);
  double (*expected)(const std::vector<double>& group);
  bool integers, booleans;
};
const ReductionRow kReductions[] = {
    {"sum", sum, sum_of, true, true},
    {"mean", mean, [](const std::vector<double>& x) { return sum_of(x) / static_cast<double>(x.size()); }, false, false},
    {"max", max, max_of, true, false},
    {"min", min, [](const std::vector<double>& x) { return min_of(x); }, true, false},
    {"argmax", argmax, argmax_of, true, false},
};

double tolerance(DType dtype) {
  return is_floating(dtype) ? 16 * std::ldexp(1, -dtype_info(static_cast<uint8_t>(dtype))->digits) : 0;
}

void expect_reductions(const Tensor& x, const ReductionRow& each) {
  const Shape shape = x.shape();
  const std::vector<double> values = elements(x);
  for (unsigned mask = 1; mask < 1u << shape.rank(); ++mask)
    for (bool keepdim : {false, true}) {
      std::vector<double> expected;
      for (const auto& group : groups(values, shape, mask)) expected.push_back(each.expected(group));
      const Tensor actual = each.apply(x, axes_of(mask, shape.rank()), keepdim);
      EXPECT_TRUE(close(actual, reduced(shape, mask, keepdim), expected, tolerance(x.dtype())))
          << each.name << ' ' << x.dtype() << shape << " over " << axes_of(mask, shape.rank());
    }
}

TEST(Reduce, OverEverySetOfAxes) {
  for (DType dtype : kRealDTypes)
    for (const ReductionRow& each : kReductions) {
      if ((is_integer(dtype) && !each.integers) || (dtype == DType::boolean && !each.booleans)) continue;
      const double high = dtype == DType::boolean ? 1.6 : 40;
      std::vector<double> values = spread(2 * 3 * 4 * 2, dtype == DType::boolean ? 0 : -40, high);
      for (double& value : values) value = is_floating(dtype) ? value : std::trunc(value);
      expect_reductions(of(dtype, values, {2, 3, 4, 2}), each);
    }
}

TEST(Reduce, StridedOperands) {
  const Tensor x = f64(spread(3 * 4 * 5, -9, 9), {3, 4, 5});
  for (const ReductionRow& each : kReductions) {
    expect_reductions(permute(x, {2, 0, 1}), each);
    expect_reductions(slice(x, 2, -1, -6, -2), each);
    expect_reductions(expand(select(x, 1, 2), {2, 3, 5}), each);
    expect_reductions(slice(slice(x, 0, 1, 3), 1, 3, 0, -1), each);
  }
}

TEST(Reduce, NoAxesMeanAllOfThem) {
  const Tensor x = counting({2, 3});
  EXPECT_TRUE(close(sum(x), {}, {15}));
  EXPECT_TRUE(close(sum(x, {}, true), {1, 1}, {15}));
  EXPECT_TRUE(close(argmax(x), {}, {5}));
  EXPECT_TRUE(close(max(f64({7}, {})), {}, {7}));
  EXPECT_TRUE(close(argmax(f64({7}, {})), {}, {0}));
  EXPECT_TRUE(close(mean(f64({7}, {}), {}, true), {}, {7}));
}

TEST(Reduce, RankZeroHasOneAxis) {
  const Tensor x = f64({-2.5}, {});
  for (const int axis : {0, -1})
    for (const bool keepdim : {false, true}) {
      for (const Tensor& same : {sum(x, {axis}, keepdim), mean(x, {axis}, keepdim), max(x, {axis}, keepdim),
                                 prod(x, {axis}, keepdim), amin(x, {axis}, keepdim), logsumexp(x, {axis}, keepdim)})
        EXPECT_TRUE(close(same, {}, {-2.5})) << axis;
      EXPECT_TRUE(close(argmax(x, {axis}, keepdim), {}, {0}) && close(argmin(x, {axis}, keepdim), {}, {0}));
      EXPECT_TRUE(close(var(x, {axis}, keepdim, 0), {}, {0}));
    }
  EXPECT_TRUE(close(softmax(x, 0), {}, {1}) && close(log_softmax(x, -1), {}, {0}));
  EXPECT_TRUE(throws(Code::invalid, {"[sum]", "axis 1"}, [&] { sum(x, {1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[var]", "axis -2"}, [&] { var(x, {-2}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[sum]", "twice"}, [&] { sum(x, {0, -1}); }));
}

TEST(Reduce, DtypesOfResults) {
  EXPECT_EQ(sum(counting({3}, DType::f32)).dtype(), DType::f32);
  EXPECT_EQ(sum(counting({3}, DType::i64)).dtype(), DType::i64);
  EXPECT_EQ(sum(of(DType::boolean, {1, 1, 0}, {3})).dtype(), DType::i64);
  EXPECT_EQ(argmax(counting({3}, DType::f32)).dtype(), DType::i64);
  EXPECT_EQ(max(counting({3}, DType::i64)).dtype(), DType::i64);
}

TEST(Reduce, NaNAndInfinities) {
  const Tensor x = f64({1, kNan, 3, -kInf, kInf, 2, -kInf, -kInf, -kInf, kNan, 1, kNan}, {4, 3});
  EXPECT_TRUE(close(max(x, {1}), {4}, {kNan, kInf, -kInf, kNan}));
  EXPECT_TRUE(close(min(x, {1}), {4}, {kNan, -kInf, -kInf, kNan}));
  EXPECT_TRUE(close(argmax(x, {1}), {4}, {1, 1, 0, 0}));
  EXPECT_TRUE(close(argmax(x, {0}), {3}, {3, 0, 3}));
  EXPECT_TRUE(close(argmax(x), {}, {1}));
  EXPECT_TRUE(close(sum(x, {1}), {4}, {kNan, kNan, -kInf, kNan}));
}

TEST(Reduce, ArgmaxTakesTheFirstOfTies) {
  EXPECT_TRUE(close(argmax(f64({1, 3, 3, 3, 0, 3}, {2, 3}), {0}), {3}, {1, 0, 0}));
  EXPECT_TRUE(close(argmax(f64({1, 3, 3, 3, 0, 3}, {2, 3})), {}, {1}));
  EXPECT_TRUE(close(argmax(zeros({5, 100}, DType::f32), {1}), {5}, {0, 0, 0, 0, 0}));
  EXPECT_TRUE(close(argmax(i64({2, 2, 1}), {0}), {}, {0}));
}

TEST(Reduce, OverNothing) {
  const Tensor none = zeros({2, 0}, DType::f64);
  EXPECT_TRUE(close(sum(none, {1}), {2}, {0, 0}));
  EXPECT_TRUE(close(sum(none), {}, {0}));
  EXPECT_TRUE(close(sum(zeros({2, 0}, DType::boolean), {1}), {2}, {0, 0}));
  EXPECT_TRUE(close(mean(none, {1}), {2}, {kNan, kNan}));
  EXPECT_TRUE(close(sum(none, {0}), {0}, {}));
  EXPECT_TRUE(close(max(none, {0}), {0}, {}));
  EXPECT_TRUE(close(argmax(none, {0}, true), {1, 0}, {}));
  EXPECT_TRUE(throws(Code::invalid, {"[max]", "(2, 0)"}, [&] { max(none, {1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[min]", "(2, 0)"}, [&] { min(none); }));
  EXPECT_TRUE(throws(Code::invalid, {"[argmax]", "(2, 0)"}, [&] { argmax(none, {1}); }));
}

TEST(Reduce, ManyElements) {
  const int64_t n = 100003;
  EXPECT_EQ(sum(arange(0, n, 1, DType::i64)).item<int64_t>(), n * (n - 1) / 2);
  EXPECT_EQ(sum(arange(0, n, 1, DType::f64)).item<double>(), static_cast<double>(n) * static_cast<double>(n - 1) / 2);
  EXPECT_NEAR(mean(full({n}, 0.1, DType::f32)).item<double>(), 0.1, 1e-7);
  EXPECT_EQ(argmax(arange(0, n)).item<int64_t>(), n - 1);
  EXPECT_EQ(max(arange(0, n, 1, DType::i64)).item<int64_t>(), n - 1);
}

// --- Softmax and its loss.

std::vector<double> log_softmax_of(const std::vector<double>& x) {
  const double top = max_of(x);
  double total = 0;
  for (double each : x) total += std::exp(each - top);
  std::vector<double> out;
  for (double each : x) out.push_back(each - top - std::log(total));
  return out;
}

TEST(Softmax, AlongEachAxis) {
  const Shape shape = {3, 4, 2};
  for (DType dtype : {DType::f64, DType::f32})
    for (int axis = -3; axis < 3; ++axis) {
      const Tensor x = of(dtype, spread(24, -6, 6), shape);
      const unsigned mask = 1u << (axis < 0 ? axis + 3 : axis);
      const Shape kept = reduced(shape, mask, true);
      auto rows = groups(elements(x), shape, mask);
      for (auto& row : rows) row = log_softmax_of(row);
      std::vector<double> expected;
      for (const Shape& at : positions(shape))
        expected.push_back(rows[static_cast<size_t>(offset(within(at, kept), kept))]
                               [static_cast<size_t>(at[static_cast<size_t>(axis < 0 ? axis + 3 : axis)])]);
      EXPECT_TRUE(close(log_softmax(x, axis), shape, expected, dtype == DType::f32 ? 2e-6 : 1e-14)) << dtype << axis;
    }
}

TEST(Softmax, ExtremeRows) {
  EXPECT_TRUE(close(log_softmax(f64({1000, 0, -1000, -kInf, 0, 0}, {2, 3})), {2, 3},
                    {0, -1000, -2000, -kInf, -std::log(2), -std::log(2)}, 1e-15));
  EXPECT_TRUE(
      close(log_softmax(f64({kInf, 0, kNan, 1, -kInf, -kInf}, {3, 2})), {3, 2}, {kNan, kNan, kNan, kNan, kNan, kNan}));
  EXPECT_TRUE(close(log_softmax(f64({5}, {1, 1})), {1, 1}, {0}));
  EXPECT_TRUE(close(log_softmax(zeros({0, 3}, DType::f64)), {0, 3}, {}));
}

TEST(CrossEntropy, Reductions) {
  const std::vector<double> rows[] = {{1, 2, 3}, {-1, 0.5, 2}, {1000, 0, -1000}};
  const std::vector<int64_t> targets = {2, 0, 1};
  for (DType dtype : {DType::f64, DType::f32}) {
    std::vector<double> flat, losses;
    for (size_t i = 0; i < 3; ++i) {
      flat.insert(flat.end(), rows[i].begin(), rows[i].end());
      losses.push_back(-log_softmax_of(rows[i])[static_cast<size_t>(targets[i])]);
    }
    const Tensor x = of(dtype, flat, {3, 3});
    const double bound = dtype == DType::f32 ? 1e-6 : 1e-14;
    EXPECT_TRUE(close(cross_entropy(x, i64(targets), Reduction::none), {3}, losses, bound));
    EXPECT_TRUE(close(cross_entropy(x, i64(targets), Reduction::sum), {}, {sum_of(losses)}, bound));
    EXPECT_TRUE(close(cross_entropy(x, i64(targets)), {}, {sum_of(losses) / 3}, bound));
    EXPECT_TRUE(close(cross_entropy(transpose(transpose(x)), i64(targets)), {}, {sum_of(losses) / 3}, bound));
  }
}

TEST(CrossEntropy, OfNoRows) {
  const Tensor none = zeros({0, 3}, DType::f64), targets = zeros({0}, DType::i64);
  EXPECT_TRUE(close(cross_entropy(none, targets, Reduction::none), {0}, {}));
  EXPECT_TRUE(close(cross_entropy(none, targets, Reduction::sum), {}, {0}));
  EXPECT_TRUE(close(cross_entropy(none, targets), {}, {kNan}));
}

}  // namespace
}  // namespace plugrad::test
