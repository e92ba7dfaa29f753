// Random integers, choices and distributions: the exact values that follow from the uniforms of a seed, and frequencies. A
// correct implementation exceeds the bounds of the statistics with a probability below 1e-6; the seeds are fixed.
#include <tests/core/orders.hpp>
#include <tests/core/uniforms.hpp>

#include <map>
#include <set>

namespace plugrad::test {
namespace {
constexpr uint64_t kSeed = 20261102;
__extension__ using Wide = unsigned __int128;

// floor(v span / 2^(24 limbs)), where the limbs of v are uniforms, lowest limb first.
std::vector<double> expected_integers(int limbs, uint64_t n, uint64_t span, double low) {
  std::vector<double> all;
  for (uint64_t i = 0; i < n; ++i) {
    Wide v = 0;
    for (int limb = limbs; limb-- > 0;)
      v = v << 24 | static_cast<uint64_t>(uniform(DType::f32, kSeed, 0, static_cast<uint64_t>(limb) * n + i) * 0x1p24);
    all.push_back(low + static_cast<double>(static_cast<uint64_t>(v * span >> (24 * limbs))));
  }
  return all;
}

TEST(Sampling, IntegersAreThoseOfLongMultiplication) {
  const struct {
    int64_t low, high;
    int limbs;
  } rows[] = {{0, 1, 2},          {0, 2, 2},         {-3, 4, 2},
              {5, 1000005, 2},    {0, 1 << 24, 2},   {0, (1 << 24) + 1, 3},
              {-7, 1LL << 33, 3}, {0, 1LL << 48, 3}, {0, (1LL << 48) - 1, 3}};
  for (const auto& each : rows) {
    manual_seed(kSeed);
    const uint64_t span = static_cast<uint64_t>(each.high - each.low);
    EXPECT_TRUE(close(randint(each.low, each.high, {5, 201}), {5, 201},
                      expected_integers(each.limbs, 1005, span, static_cast<double>(each.low))))
        << each.low << " .. " << each.high;
  }
  manual_seed(kSeed);
  EXPECT_TRUE(close(randint(7, {10}, DType::u8), {10}, expected_integers(2, 10, 7, 0)));
  manual_seed(kSeed);
  EXPECT_TRUE(close(randint_like(zeros({10}, DType::f16), 2, 9), {10}, expected_integers(2, 10, 7, 2)));
}

// The sum of (observed - expected)^2 / expected.
double chi_square(const std::vector<double>& values, const std::vector<double>& probabilities) {
  std::vector<double> counts(probabilities.size());
  for (const double each : values) ++counts.at(static_cast<size_t>(each));
  double total = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = probabilities[i] * static_cast<double>(values.size());
    if (expected == 0) EXPECT_EQ(counts[i], 0) << i;
    else total += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return total;
}

TEST(Sampling, FrequenciesOfIntegers) {
  manual_seed(kSeed);
  EXPECT_LT(chi_square(elements(randint(0, 10, {20000})), std::vector<double>(10, 0.1)), 46);
  // The upper bits of numbers that need all limbs.
  const std::vector<double> wide = elements(randint(INT64_MIN, INT64_MAX, {20000}));
  std::vector<double> eighths;
  for (const double each : wide) eighths.push_back(std::floor((each * 0x1p-63 + 1) * 4));
  EXPECT_LT(chi_square(eighths, std::vector<double>(8, 0.125)), 42);
}

TEST(Sampling, PermutationsAreTheOrderOfTheKeys) {
  manual_seed(kSeed);
  const uint64_t n = 500;
  std::vector<double> keys;
  for (uint64_t i = 0; i < n; ++i)
    keys.push_back(uniform(DType::f32, kSeed, 0, i) * 0x1p48 + uniform(DType::f32, kSeed, 0, n + i) * 0x1p24);
  EXPECT_TRUE(close(randperm(500), {500}, orders(keys, {500}, 0, false)));
  EXPECT_TRUE(close(randperm(0), {0}, {}));
  EXPECT_EQ(randperm(3, DType::i32).dtype(), DType::i32);
}

TEST(Sampling, EveryPermutationIsEquallyFrequent) {
  manual_seed(kSeed);
  std::vector<double> numbers;
  for (int i = 0; i < 600; ++i) {
    const std::vector<double> p = elements(randperm(3));
    numbers.push_back(p[0] * 2 + (p[1] > p[2]));
  }
  EXPECT_LT(chi_square(numbers, std::vector<double>(6, 1 / 6.0)), 36);
}

TEST(Sampling, BernoulliComparesWithUniforms) {
  for (DType dtype : {DType::f32, DType::f64}) {
    manual_seed(kSeed);
    std::vector<double> p, expected;
    for (uint64_t i = 0; i < 300; ++i) {
      p.push_back(static_cast<double>(i % 5) / 4);
      expected.push_back(uniform(dtype, kSeed, 0, i) < p.back());
    }
    EXPECT_TRUE(close(bernoulli(of(dtype, p, {300})), {300}, expected));
  }
  manual_seed(kSeed);
  const std::vector<double> few = elements(bernoulli(zeros({20000}, DType::i64), 0.125));
  EXPECT_LT(chi_square(few, {0.875, 0.125}), 24);
  EXPECT_EQ(bernoulli(zeros({2}, DType::i64), 0.5).dtype(), DType::i64);
  EXPECT_EQ(bernoulli(zeros({2}, DType::f16)).dtype(), DType::f16);
}

const std::vector<double> kWeights = {0, 1, 0, 5, 2, 0};
const std::vector<double> kProbabilities = {0, 0.125, 0, 0.625, 0.25, 0};

TEST(Sampling, MultinomialWithReplacementInvertsTheSums) {
  manual_seed(kSeed);
  std::vector<double> expected;
  for (uint64_t i = 0; i < 400; ++i) {
    const double part = uniform(DType::f64, kSeed, 0, i) * 8;
    expected.push_back(part < 1 ? 1 : part < 6 ? 3 : 4);
  }
  EXPECT_TRUE(close(multinomial(f64(kWeights), 400, true), {400}, expected));
  EXPECT_LT(chi_square(elements(multinomial(of(DType::f32, kWeights, {6}), 20000, true)), kProbabilities), 28);
}

TEST(Sampling, MultinomialWithoutReplacementTakesEachOnce) {
  manual_seed(kSeed);
  const Tensor lines = expand(of(DType::f32, kWeights, {6}), {8000, 6});
  const Tensor chosen = multinomial(lines, 3);
  EXPECT_EQ(chosen.shape(), Shape({8000, 3}));
  EXPECT_TRUE(close(sort(chosen).values, {8000, 3}, elements(expand(i64({1, 3, 4}), {8000, 3}))));
  EXPECT_LT(chi_square(elements(select(chosen, 1, 0)), kProbabilities), 28);
  // The second choice is among the remaining elements: after 3, whose weight is 5 of 8, it is 1 with probability 1/3.
  std::vector<double> after;
  const std::vector<double> all = elements(chosen);
  for (size_t i = 0; i < all.size(); i += 3)
    if (all[i] == 3) after.push_back(all[i + 1] == 1);
  EXPECT_LT(chi_square(after, {2 / 3.0, 1 / 3.0}), 24);
}

TEST(Sampling, MultinomialRefusesWhatIsNoDistribution) {
  const auto refused = [](const std::vector<double>& weights, int64_t samples, bool replacement, const char* why) {
    EXPECT_TRUE(throws(Code::invalid, {"[multinomial]", why}, [&] { multinomial(f64(weights), samples, replacement); }));
  };
  refused({1, -1}, 1, true, "negative");
  refused({1, kSeed * HUGE_VAL}, 1, false, "infinite");
  refused({1, std::nan("")}, 1, false, "NaN");
  refused({0, 0}, 1, true, "all 0");
  refused({0, 0, 1}, 2, false, "1 positive");
  refused({1, 1}, 3, false, "2 positive");
  refused({1, 1}, 0, true, "num_samples is 0");
  EXPECT_TRUE(throws(Code::invalid, {"[multinomial]", "(1, 1, 1)"}, [] { multinomial(f64({1}, {1, 1, 1}), 1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[multinomial]", "i64"}, [] { multinomial(i64({1}), 1); }));
}

TEST(Sampling, NormalMovesAndScales) {
  const Tensor mean = f64({1, 2, 3}), deviation = f64({0.5, 0}, {2, 1});
  manual_seed(kSeed);
  const Tensor unit = randn({2, 3}, DType::f64);
  manual_seed(kSeed);
  EXPECT_TRUE(close(normal(mean, deviation), {2, 3}, elements(unit * deviation + mean)));
  manual_seed(kSeed);
  const Tensor three = randn({3}, DType::f64);
  manual_seed(kSeed);
  EXPECT_TRUE(close(normal(mean, 2), {3}, elements(three * 2 + mean)));
  manual_seed(kSeed);
  EXPECT_TRUE(close(normal(1, abs(mean)), {3}, elements(three * mean + 1)));
  manual_seed(kSeed);
  EXPECT_TRUE(close(normal(1, 2, {3}, DType::f64), {3}, elements(three * 2 + 1)));
  manual_seed(kSeed);
  EXPECT_TRUE(close(randn_like(mean), {3}, elements(three)));
  manual_seed(kSeed);
  EXPECT_TRUE(close(rand_like(mean), {3}, uniforms(DType::f64, kSeed, 0, 3)));
  EXPECT_EQ(rand_like(i64({1, 2}), DType::f32).dtype(), DType::f32);
}

TEST(Sampling, ExponentialIsTheLogarithmOfAUniform) {
  manual_seed(kSeed);
  std::vector<double> expected;
  for (const double each : uniforms(DType::f64, kSeed, 0, 100)) expected.push_back(-std::log1p(-each) / 2);
  EXPECT_TRUE(close(exponential({100}, 2, DType::f64), {100}, expected, 1e-14));
  const Tensor x = exponential({40000}, 4);
  EXPECT_GE(min(x).item<double>(), 0);
  EXPECT_NEAR(mean(x).item<double>(), 0.25, 5 * 0.25 / 200);
  EXPECT_NEAR(var(x).item<double>(), 0.0625, 5 * 0.0625 * std::sqrt(8.0) / 200);
  EXPECT_NEAR(mean(cast(gt(x, 0.5), DType::f32)).item<double>(), std::exp(-2), 5 * 0.35 / 200);
}

TEST(Sampling, WrongArgumentsAreNamed) {
  const auto refused = [](const std::vector<std::string>& parts, const std::function<void()>& f) {
    EXPECT_TRUE(throws(Code::invalid, parts, f));
  };
  refused({"[randint]", "3"}, [] { randint(3, 3, {2}); });
  refused({"[randint]", "u8", "-1"}, [] { randint(-1, 3, {2}, DType::u8); });
  refused({"[randint]", "i8", "128"}, [] { randint(0, 129, {2}, DType::i8); });
  refused({"[randperm]", "-1"}, [] { randperm(-1); });
  refused({"[randperm]", "u8"}, [] { randperm(257, DType::u8); });
  refused({"[bernoulli]", "outside"}, [] { bernoulli(f64({0.5, 1.5})); });
  refused({"[bernoulli]", "outside"}, [] { bernoulli(f64({std::nan("")})); });
  refused({"[bernoulli]", "i64"}, [] { bernoulli(i64({1})); });
  refused({"[bernoulli]", "2"}, [] { bernoulli(f64({0.5}), 2); });
  refused({"[normal]", "-1"}, [] { normal(f64({0.5}), -1); });
  refused({"[normal]", "below 0"}, [] { normal(0, f64({1, -1})); });
  refused({"[exponential]", "0"}, [] { exponential({2}, 0); });
  refused({"[exponential]", "i64"}, [] { exponential({2}, 1, DType::i64); });
}

TEST(Sampling, NoElementsUseNoNumbers) {
  manual_seed(1);
  EXPECT_EQ(randint(5, {0, 3}).count(), 0);
  EXPECT_EQ(exponential({0}).count(), 0);
  EXPECT_EQ(bernoulli(zeros({0})).count(), 0);
  EXPECT_EQ(generator_state(default_device()).offset, 0u);
}

}  // namespace
}  // namespace plugrad::test
