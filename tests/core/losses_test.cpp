// Compares losses with plain loops.
#include <tests/core/expect.hpp>

#include <algorithm>
#include <cmath>

namespace plugrad::test {
namespace {
constexpr double kInf = HUGE_VAL;
using Values = std::vector<double>;

double total(const Values& all) {
  double sum = 0;
  for (double each : all) sum += each;
  return sum;
}

struct Row {
  const char* name;
  Tensor (*apply)(const Tensor& x, const Tensor& target, Reduction reduction);
  double (*expected)(double x, double target);
};
const Row kRows[] = {
    {"mse_loss", [](const Tensor& x, const Tensor& t, Reduction r) { return mse_loss(x, t, r); },
     [](double x, double t) { return (x - t) * (x - t); }},
    {"l1_loss", [](const Tensor& x, const Tensor& t, Reduction r) { return l1_loss(x, t, r); },
     [](double x, double t) { return std::abs(x - t); }},
    {"huber_loss", [](const Tensor& x, const Tensor& t, Reduction r) { return huber_loss(x, t, r, 1.5); },
     [](double x, double t) {
       const double d = std::abs(x - t);
       return d <= 1.5 ? d * d / 2 : 1.5 * (d - 0.75);
     }},
    {"binary_cross_entropy_with_logits",
     [](const Tensor& x, const Tensor& t, Reduction r) { return binary_cross_entropy_with_logits(x, t, {}, {}, r); },
     [](double x, double t) {
       const double p = 1 / (1 + std::exp(-x));
       return -t * std::log(p) - (1 - t) * std::log(1 - p);
     }},
    {"kl_div", [](const Tensor& x, const Tensor& t, Reduction r) { return kl_div(x, t, r); },
     [](double x, double t) { return t > 0 ? t * (std::log(t) - x) : 0; }},
    {"kl_div of logarithms", [](const Tensor& x, const Tensor& t, Reduction r) { return kl_div(x, t, r, true); },
     [](double x, double t) { return std::exp(t) * (t - x); }},
};

TEST(Losses, OfNumbersEqualTheirFormulas) {
  const Shape shape = {3, 4};
  Values x = spread(12, -3, 3), t = spread(12, 0, 1, 0.25);
  t[2] = 0;
  for (const Row& row : kRows) {
    Values expected;
    for (size_t i = 0; i < x.size(); ++i) expected.push_back(row.expected(x[i], t[i]));
    const Tensor strided = transpose(contiguous(transpose(f64(x, shape))));
    EXPECT_TRUE(close(row.apply(strided, f64(t, shape), Reduction::none), shape, expected, 1e-14)) << row.name;
    EXPECT_TRUE(close(row.apply(f64(x, shape), f64(t, shape), Reduction::sum), {}, {total(expected)}, 1e-14)) << row.name;
    EXPECT_TRUE(close(row.apply(f64(x, shape), f64(t, shape), Reduction::mean), {}, {total(expected) / 12}, 1e-14))
        << row.name;
    EXPECT_TRUE(close(row.apply(zeros({0}), zeros({0}), Reduction::sum), {}, {0})) << row.name;
    EXPECT_TRUE(throws(Code::invalid, {std::string("[") + std::string(row.name).substr(0, 6), "(12,)", "(3, 4)"}, [&] {
      row.apply(f64(x, {12}), f64(t, shape), Reduction::sum);
    })) << row.name;
  }
}

TEST(Losses, BinaryCrossEntropyDoesNotOverflow) {
  const Tensor x = f64({-1000, 1000, 0.5}), t = f64({1, 0, 1});
  const Tensor loss = binary_cross_entropy_with_logits(x, t, f64({2}), f64({3, 1, 2}), Reduction::none);
  EXPECT_TRUE(close(loss, {3}, {6000, 2000, 4 * std::log1p(std::exp(-0.5))}, 1e-15));
}

// --- Classes. x has the shape (2, 3, 4).

const Shape kShape = {2, 3, 4};
const Values kWeight = {0.5, 2, 1};
struct Classes {
  Values logs;  // log_softmax of x
  std::vector<int64_t> target = {0, 1, 2, 2, 1, 0, 0, 2};

  explicit Classes(const Values& x) : logs(x) {
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t i = 0; i < 4; ++i) {
        double sum = 0;
        for (int64_t c = 0; c < 3; ++c) sum += std::exp(x[position(n, c, i)]);
        for (int64_t c = 0; c < 3; ++c) logs[position(n, c, i)] -= std::log(sum);
      }
  }
  static size_t position(int64_t n, int64_t c, int64_t i) { return static_cast<size_t>(offset({n, c, i}, kShape)); }
  double log_of(size_t row, int64_t c) const {
    return logs[position(static_cast<int64_t>(row / 4), c, static_cast<int64_t>(row % 4))];
  }
};

struct Expected {
  Values losses;
  double counts = 0;
};
Expected entropy(const Classes& classes, const Values& weight, int64_t ignored, double smoothing) {
  Expected all;
  for (size_t row = 0; row < 8; ++row) {
    const int64_t target = classes.target[row];
    double loss = 0, smooth = 0;
    if (target != ignored) {
      loss = -weight[static_cast<size_t>(target)] * classes.log_of(row, target);
      for (int64_t c = 0; c < 3; ++c) smooth -= weight[static_cast<size_t>(c)] * classes.log_of(row, c) / 3;
      all.counts += weight[static_cast<size_t>(target)];
    }
    all.losses.push_back((1 - smoothing) * loss + smoothing * smooth);
  }
  return all;
}

TEST(Losses, CrossEntropyOfClasses) {
  const Values values = spread(24, -2, 2);
  const Classes classes(values);
  const Tensor x = f64(values, kShape), targets = i64(classes.target, {2, 4});
  for (bool weighted : {false, true})
    for (int64_t ignored : {-100, 2})
      for (double smoothing : {0.0, 0.25}) {
        const Tensor weight = weighted ? f64(kWeight) : Tensor();
        const Expected expected = entropy(classes, weighted ? kWeight : Values{1, 1, 1}, ignored, smoothing);
        const auto loss = [&](Reduction how) { return cross_entropy(x, targets, how, weight, ignored, smoothing); };
        EXPECT_TRUE(close(loss(Reduction::none), {2, 4}, expected.losses, 1e-13)) << weighted << ignored << smoothing;
        EXPECT_TRUE(close(loss(Reduction::sum), {}, {total(expected.losses)}, 1e-13));
        EXPECT_TRUE(close(loss(Reduction::mean), {}, {total(expected.losses) / expected.counts}, 1e-13));
        if (smoothing != 0) continue;
        const Tensor logs = f64(classes.logs, kShape);
        EXPECT_TRUE(close(nll_loss(logs, targets, weight, ignored, Reduction::none), {2, 4}, expected.losses, 1e-13));
        EXPECT_TRUE(close(nll_loss(logs, targets, weight, ignored), {}, {total(expected.losses) / expected.counts}, 1e-13));
      }
}

TEST(Losses, CrossEntropyOfProbabilities) {
  const Values values = spread(24, -2, 2), wanted = spread(24, 0, 1);
  const Classes classes(values);
  Values expected(8);
  for (size_t row = 0; row < 8; ++row)
    for (int64_t c = 0; c < 3; ++c) {
      const size_t at = Classes::position(static_cast<int64_t>(row / 4), c, static_cast<int64_t>(row % 4));
      expected[row] -= kWeight[static_cast<size_t>(c)] * classes.logs[at] * (0.75 * wanted[at] + 0.25 / 3);
    }
  const auto loss = [&](Reduction reduction) {
    return cross_entropy(f64(values, kShape), f64(wanted, kShape), reduction, f64(kWeight), {}, 0.25);
  };
  EXPECT_TRUE(close(loss(Reduction::none), {2, 4}, expected, 1e-13));
  EXPECT_TRUE(close(loss(Reduction::mean), {}, {total(expected) / 8}, 1e-13));
  EXPECT_TRUE(close(cross_entropy(f64({0, 0}), f64({0.5, 0.5})), {}, {std::log(2.0)}, 1e-15));
}

// ln(2) would be lost if it were first added to logits of 1e30.
TEST(Losses, LogitsFarFromZero) {
  const Tensor x = f64({1e30, 1e30, 1e30, 0}, {2, 2}), t = i64({1, 0}, {2});
  const double ln2 = std::log(2);
  EXPECT_TRUE(close(log_softmax(x, 1), {2, 2}, {-ln2, -ln2, 0, -1e30}, 1e-15));
  EXPECT_TRUE(close(softmax(x, 1), {2, 2}, {0.5, 0.5, 1, 0}, 1e-15));
  EXPECT_TRUE(close(cross_entropy(x, t, Reduction::none), {2}, {ln2, 0}, 1e-15));
}

TEST(Losses, SmallAndIgnoredTargets) {
  EXPECT_TRUE(close(cross_entropy(f64({0, 0}), i64({1}, {})), {}, {std::log(2.0)}, 1e-15));
  EXPECT_TRUE(close(cross_entropy(zeros({1, 2}), i64({-1}), Reduction::mean, {}, -1), {}, {std::nan("")}));
  EXPECT_TRUE(close(cross_entropy(zeros({1, 2}), i64({-1}), Reduction::sum, {}, -1), {}, {0}));
  EXPECT_TRUE(close(cross_entropy(zeros({0, 2, 3}), zeros({0, 3}, DType::i64), Reduction::sum), {}, {0}));
  EXPECT_TRUE(close(nll_loss(f64({-kInf, 0}), i64({1}, {})), {}, {0}));
  EXPECT_TRUE(close(nll_loss(f64({-kInf, 0, -1, -kInf}, {2, 2}), i64({9, 0}), {}, 9), {}, {1}));
  const Tensor x = zeros({2, 2}, DType::f64).requires_grad_();
  const Tensor loss = cross_entropy(x, i64({5, 1}), Reduction::mean, {}, 5);
  EXPECT_TRUE(close(grad({loss}, {x})[0], {2, 2}, {0, 0, 0.5, -0.5}));
}

// The loss and each element of the gradient are off by half a unit in the last place, also where the sum of exponentials is
// large.
TEST(Losses, CrossEntropyOfHalvesIsRoundedOnce) {
  constexpr int64_t kRows = 4, kClasses = 300;
  const Tensor targets = i64({7, 0, 299, 40});
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const double smoothing : {0.0, 0.1}) {
      const Tensor x = cast(of(DType::f64, spread(kRows * kClasses, -2, 2), {kRows, kClasses}), dtype).requires_grad_();
      const Tensor wide = cast(x.detach(), DType::f64).requires_grad_();
      const auto loss = [&](const Tensor& logits) {
        return cross_entropy(logits, targets, Reduction::mean, {}, -100, smoothing);
      };
      const Tensor found = loss(x), expected = loss(wide);
      EXPECT_EQ(found.dtype(), dtype);
      const double half = dtype == DType::bf16 ? 0x1p-8 : 0x1p-11, least = 0x1p-25;
      const auto near = [&](double got, double exact) {
        return std::abs(got - exact) <= half * std::abs(exact) * 1.01 + least;
      };
      EXPECT_TRUE(near(elements(found)[0], elements(expected)[0]));
      const auto slopes = elements(grad({found}, {x})[0]), exact = elements(grad({expected}, {wide})[0]);
      for (size_t i = 0; i < slopes.size(); ++i) EXPECT_TRUE(near(slopes[i], exact[i])) << slopes[i] << " " << exact[i];
    }
}

// Probabilities may have another dtype than logits that are halves. Only halves round the loss.
TEST(Losses, CrossEntropyOfMixedDtypes) {
  const Tensor x = cast(of(DType::f64, spread(12, -2, 2), {3, 4}), DType::bf16), wide = cast(x, DType::f32);
  const Tensor wanted = softmax(of(DType::f32, spread(12, -1, 1), {3, 4}), -1);
  const Tensor loss = cross_entropy(x, wanted);
  EXPECT_EQ(loss.dtype(), DType::bf16);
  EXPECT_TRUE(close(loss, {}, elements(cast(cross_entropy(wide, wanted), DType::bf16))));
  const Tensor weight = of(DType::f64, {1, 2, 3, 4}, {4});
  EXPECT_EQ(cross_entropy(wide, i64({0, 1, 3}), Reduction::mean, weight).dtype(), DType::f64);
  EXPECT_TRUE(throws(Code::invalid, {"[cross_entropy]", "f32", "f64", "cast one of them"},
                     [&] { cross_entropy(wide, cast(wanted, DType::f64)); }));
}

TEST(Losses, ErrorsOfClasses) {
  const Tensor x = counting(kShape);
  EXPECT_TRUE(throws(Code::invalid, {"[cross_entropy]", "(2, 3, 4)", "(2, 3)"},
                     [&] { cross_entropy(x, zeros({2, 3}, DType::i64)); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cross_entropy]", "weight", "(2,)"},
                     [&] { cross_entropy(x, zeros({2, 4}, DType::i64), Reduction::mean, f64({1, 2})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cross_entropy]", "label_smoothing"},
                     [&] { cross_entropy(x, zeros({2, 4}, DType::i64), Reduction::mean, {}, {}, 2); }));
  EXPECT_TRUE(throws(Code::invalid, {"[nll_loss]", "f64", "an integer dtype"}, [&] { nll_loss(x, x); }));
  EXPECT_TRUE(throws(Code::index_error, {}, [&] { elements(cross_entropy(x, full({2, 4}, 3, DType::i64))); }));
  EXPECT_TRUE(throws(Code::invalid, {"[huber_loss]", "delta"}, [] { huber_loss(f64({1}), f64({1}), Reduction::sum, 0); }));
}

}  // namespace
}  // namespace plugrad::test
