// Compares random numbers with the test's own Philox, so they are the same on all devices; seeds, states, moments.
#include <tests/core/uniforms.hpp>

#include <cmath>
#include <numbers>

namespace plugrad::test {
namespace {

TEST(Random, PhiloxOfTheTestGivesThePapersVector) {
  // kat_vectors of Random123: philox4x32 10, counter and key 0.
  EXPECT_EQ(philox(0, 0), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

std::vector<double> normals(DType dtype, uint64_t seed, uint64_t offset, int64_t n) {
  std::vector<double> all;
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t pair = static_cast<uint64_t>(i) & ~uint64_t(1);
    const double u = uniform(dtype, seed, offset, pair), v = uniform(dtype, seed, offset, pair + 1);
    const double r = std::sqrt(-2 * std::log(1 - u)), angle = 2 * std::numbers::pi * v;
    all.push_back(r * (i % 2 ? std::sin(angle) : std::cos(angle)));
  }
  return all;
}

constexpr uint64_t kSeeds[] = {0, 1, 42, 0x123456789abcdef0, ~uint64_t(0)};

TEST(Random, UniformsAreThoseOfPhiloxToTheBit) {
  for (uint64_t seed : kSeeds)
    for (DType dtype : {DType::f32, DType::f64}) {
      manual_seed(seed);
      EXPECT_TRUE(close(rand({7}, dtype), {7}, uniforms(dtype, seed, 0, 7))) << seed << dtype;
      const uint64_t used = dtype == DType::f32 ? 2 : 4;
      EXPECT_EQ(generator_state(default_device()), (GeneratorState{seed, used}));
      EXPECT_TRUE(close(rand({3, 5}, dtype), {3, 5}, uniforms(dtype, seed, used, 15))) << "goes on where the first stopped";
    }
}

TEST(Random, NormalsAreThoseOfBoxMuller) {
  for (uint64_t seed : kSeeds)
    for (DType dtype : {DType::f32, DType::f64})
      for (int64_t n : {1, 2, 5, 64}) {
        manual_seed(seed);
        EXPECT_TRUE(close(randn({n}, dtype), {n}, normals(dtype, seed, 0, n), dtype == DType::f32 ? 4e-6 : 8e-15))
            << seed << dtype << n;
        const uint64_t per = dtype == DType::f32 ? 4 : 2;
        EXPECT_EQ(generator_state(default_device()).offset, (static_cast<uint64_t>(n) + per - 1) / per);
      }
}

TEST(Random, CountersWrapIn64Bits) {
  for (uint64_t offset : {uint64_t(0xffffffff), ~uint64_t(0)}) {
    set_generator_state(default_device(), {5, offset});
    EXPECT_TRUE(close(rand({9}), {9}, uniforms(DType::f32, 5, offset, 9))) << offset;
  }
}

TEST(Random, StateGoesOnWhereAnotherStopped) {
  manual_seed(7);
  rand({10});
  const GeneratorState state = generator_state(default_device());
  const std::vector<double> expected = elements(rand({6}));
  const std::vector<double> normal = elements(randn({3}));
  set_generator_state(default_device(), state);
  EXPECT_EQ(elements(rand({6})), expected);
  EXPECT_EQ(elements(randn({3})), normal);
  manual_seed(7);
  EXPECT_EQ(generator_state(default_device()), (GeneratorState{7, 0}));
  EXPECT_NE(elements(rand({6})), expected);
}

TEST(Random, NoElementsUseNoNumbers) {
  manual_seed(1);
  EXPECT_EQ(rand({0, 3}).count(), 0);
  EXPECT_EQ(randn({0}).count(), 0);
  EXPECT_EQ(generator_state(default_device()).offset, 0u);
}

TEST(Random, MomentsAndRange) {
  manual_seed(3);
  const int64_t n = 200000;
  for (DType dtype : {DType::f32, DType::f64}) {
    const Tensor u = rand({n}, dtype, default_device(), -3, 5), z = randn({n}, dtype, default_device(), 2, 3);
    // Standard errors: 8 / sqrt(12 n) = 0.005, 3 / sqrt(n) = 0.007; of the variances 5.33 * 0.89 / sqrt(n), 9 sqrt(2 / n).
    EXPECT_NEAR(mean(u).item<double>(), 1, 0.03);
    EXPECT_NEAR(mean(pow(u - 1, 2)).item<double>(), 64.0 / 12, 0.06);
    EXPECT_NEAR(mean(z).item<double>(), 2, 0.04);
    EXPECT_NEAR(mean(pow(z - 2, 2)).item<double>(), 9, 0.17);
    EXPECT_GE(min(u).item<double>(), -3);
    EXPECT_LE(max(u).item<double>(), 5);
  }
}

TEST(Random, TheHighEndIsNeverReached) {
  // In f32 the largest uniform, 1 - 2^-24, plus 1 is halfway between the largest number below 2 and 2: it must not become 2.
  const auto largest = [] {
    for (uint64_t counter = 0;; ++counter)
      for (uint64_t i = 0; i < 4; ++i)
        if (philox(9, counter)[i] >> 8 == 0xffffff) return counter;
  };
  set_generator_state(default_device(), {9, largest()});
  EXPECT_LT(max(rand({4}, DType::f32, default_device(), 1, 2)).item<double>(), 2);
}

TEST(Random, OnlyFloatingDtypes) {
  EXPECT_TRUE(throws(Code::invalid, {"[uniform]", "i64", "a floating dtype"}, [] { rand({2}, DType::i64); }));
  EXPECT_TRUE(throws(Code::invalid, {"[normal]", "bool", "a floating dtype"}, [] { randn({2}, DType::boolean); }));
}

}  // namespace
}  // namespace plugrad::test
