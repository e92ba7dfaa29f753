// Every dtype on every device: if the device has no kernel for a dtype, the core computes in a wider dtype.
#include <tests/core/expect.hpp>

#include <algorithm>
#include <cmath>

namespace plugrad::test {
namespace {
constexpr DType kSmall[] = {DType::u8, DType::i8, DType::i16};
constexpr DType kHalves[] = {DType::f16, DType::bf16};
const DTypeInfo& info(DType dtype) { return *dtype_info(static_cast<uint8_t>(dtype)); }
double largest(DType dtype) { return std::ldexp(1, info(dtype).digits) - 1; }
double least(DType dtype) { return info(dtype).is_unsigned() ? 0 : -largest(dtype) - 1; }

TEST(DTypes, SmallIntegersWrapAsIntegersOfTheirSize) {
  for (DType dtype : kSmall) {
    const double top = largest(dtype), bottom = least(dtype);
    const Tensor x = of(dtype, {top, top, bottom}, {3});
    EXPECT_TRUE(close(x + 1, {3}, {bottom, bottom, bottom + 1})) << dtype;
    EXPECT_TRUE(close(x + of(dtype, {2, 0, 1}, {3}), {3}, {bottom + 1, top, bottom + 1})) << dtype;
    EXPECT_TRUE(close(of(dtype, {bottom}, {1}) - 1, {1}, {top})) << dtype;
    EXPECT_EQ((x + 1).dtype(), dtype);
    EXPECT_TRUE(close(maximum(x, of(dtype, {1}, {1})), {3}, {top, top, std::max(bottom, 1.0)})) << dtype;
  }
  EXPECT_TRUE(close(of(DType::u8, {200, 3}, {2}) * of(DType::u8, {2, 100}, {2}), {2}, {144, 44}));
  EXPECT_TRUE(close(of(DType::i16, {300, -300}, {2}) * of(DType::i16, {300, 300}, {2}), {2}, {24464, -24464}));
}

TEST(DTypes, ComparisonsSeeTheWholeRange) {
  for (DType dtype : kSmall) {
    const Tensor x = of(dtype, {least(dtype), 0, largest(dtype)}, {3});
    EXPECT_TRUE(close(gt(x, 0), {3}, {0, 0, 1})) << dtype;
    EXPECT_TRUE(close(lt(x, of(dtype, {largest(dtype)}, {1})), {3}, {1, 1, 0})) << dtype;
    EXPECT_TRUE(close(eq(x, 0), {3}, {info(dtype).is_unsigned() ? 1.0 : 0.0, 1, 0})) << dtype;
  }
}

TEST(DTypes, ReductionsOfSmallIntegersAreExact) {
  for (DType dtype : kSmall) {
    const Tensor x = expand(of(dtype, {largest(dtype)}, {1}), {1000});
    EXPECT_EQ(sum(x).dtype(), DType::i64);
    EXPECT_EQ(sum(x).item<int64_t>(), static_cast<int64_t>(1000 * largest(dtype))) << dtype;
    const Tensor both = of(dtype, {5, least(dtype), largest(dtype)}, {3});
    EXPECT_TRUE(close(max(both), {}, {largest(dtype)})) << dtype;
    EXPECT_TRUE(close(min(both), {}, {least(dtype)})) << dtype;
    EXPECT_EQ(argmax(both).item<int64_t>(), 2);
  }
}

// f32 has more than twice the digits of a half, so that results in f32 round to the correctly rounded halves.
TEST(DTypes, HalvesAreRoundedOnce) {
  for (DType dtype : kHalves) {
    const Tensor x = of(dtype, spread(64, -3, 3), {64}), y = of(dtype, spread(64, 0.5, 2, 0.25), {64});
    const std::vector<double> a = elements(x), b = elements(y);
    std::vector<double> sums, quotients;
    for (size_t i = 0; i < a.size(); ++i) {
      sums.push_back(a[i] + b[i]);
      quotients.push_back(a[i] / b[i]);
    }
    EXPECT_TRUE(close(x + y, {64}, elements(of(dtype, sums, {64})))) << dtype;
    EXPECT_TRUE(close(x / y, {64}, elements(of(dtype, quotients, {64})))) << dtype;
    EXPECT_EQ(exp(x).dtype(), dtype);
    const double product = sum(cast(x, DType::f64) * cast(y, DType::f64)).item<double>();
    EXPECT_TRUE(close(matmul(x, y), {}, {product}, std::ldexp(1, 1 - info(dtype).digits))) << dtype;
  }
  EXPECT_TRUE(close(of(DType::f16, {65504, 60000}, {2}) * 2, {2}, {INFINITY, INFINITY}));
}

TEST(DTypes, GradientsOfHalvesAreHalves) {
  for (DType dtype : kHalves) {
    Tensor x = of(dtype, {0.5, 2, -1}, {3});
    x.requires_grad_();
    sum(x * x).backward();
    EXPECT_EQ(x.grad().dtype(), dtype);
    EXPECT_TRUE(close(x.grad(), {3}, {1, 4, -2})) << dtype;
  }
}

TEST(DTypes, EveryPairConverts) {
  for (DType from : kRealDTypes)
    for (DType to : kRealDTypes) {
      const Tensor x = of(from, {0, 1, 1}, {3});
      EXPECT_TRUE(close(cast(x, to), {3}, {0, 1, 1})) << from << " to " << to;
      EXPECT_TRUE(close(cast(slice(x, 0, 2, -4, -2), to), {2}, {1, 0})) << from << " to " << to;
    }
}

TEST(DTypes, FractionsSaturateAndIntegersWrapInSmallIntegers) {
  for (DType from : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (DType to : {DType::u8, DType::i8}) {
      const Tensor x = of(from, {1.75, -1.75, 300, -300, INFINITY, -INFINITY, NAN}, {7});
      const double top = largest(to), bottom = least(to);
      EXPECT_TRUE(close(cast(x, to), {7}, {1, std::max(-1.0, bottom), top, bottom, top, bottom, 0})) << from << " to " << to;
    }
  EXPECT_TRUE(close(cast(i64({256, 257, -1}), DType::u8), {3}, {0, 1, 255}));
  EXPECT_TRUE(close(cast(of(DType::i16, {128, -129}, {2}), DType::i8), {2}, {-128, 127}));
  EXPECT_TRUE(close(cast(i64({65505, 65519, 65520}), DType::f16), {3}, {65504, 65504, INFINITY}));
  // A first rounding to f32 would make these numbers ties.
  EXPECT_TRUE(close(cast(f64({2049 + 1e-9, 2051 - 1e-9}), DType::f16), {2}, {2050, 2050}));
}

TEST(DTypes, IndexingMovesEveryDtype) {
  for (DType dtype : kRealDTypes) {
    const Tensor x = of(dtype, {0, 1, 1}, {3});
    EXPECT_TRUE(close(gather(x, 0, i64({2, 0})), {2}, {1, 0})) << dtype;
    EXPECT_TRUE(close(where(of(DType::boolean, {1, 0, 0}, {3}), x, ones_like(x)), {3}, {0, 1, 1})) << dtype;
    if (dtype == DType::boolean) continue;
    EXPECT_TRUE(close(scatter_add(x, 0, i64({0, 0}), of(dtype, {1, 2}, {2})), {3}, {3, 1, 1})) << dtype;
  }
}

TEST(DTypes, FactoriesMakeEveryDtype) {
  for (DType dtype : kRealDTypes) {
    EXPECT_TRUE(close(full({2}, 1, dtype), {2}, {1, 1})) << dtype;
    if (dtype == DType::boolean) continue;
    EXPECT_TRUE(close(arange(3, 9, 2, dtype), {3}, {3, 5, 7})) << dtype;
  }
  EXPECT_TRUE(close(full({1}, 200, DType::u8), {1}, {200}));
}

TEST(DTypes, RandomHalvesStayBelowTheEnd) {
  for (DType dtype : kHalves) {
    const Device device = default_device();
    const std::vector<double> unit = elements(rand({20000}, dtype)), moved = elements(rand({20000}, dtype, device, -3, 2)),
                              negative = elements(rand({100}, dtype, device, -1, 0));
    EXPECT_LT(*std::ranges::max_element(unit), 1);
    EXPECT_GE(*std::ranges::min_element(unit), 0);
    EXPECT_LT(*std::ranges::max_element(moved), 2);
    EXPECT_GE(*std::ranges::min_element(moved), -3);
    EXPECT_NEAR(mean(cast(rand({20000}, dtype), DType::f64)).item<double>(), 0.5, 0.02) << dtype;
    EXPECT_NEAR(mean(cast(randn({20000}, dtype), DType::f64)).item<double>(), 0, 0.05) << dtype;
    EXPECT_LT(*std::ranges::max_element(negative), 0);
  }
}

TEST(DTypes, DetoursAreCounted) {
  const Tensor x = of(DType::u8, {1, 2}, {2}), y = of(DType::f32, {1, 2}, {2});
  const auto widened = [] { return default_device().counters().widened; };
  const uint64_t before = widened();
  EXPECT_TRUE(close(y + y, {2}, {2, 4}));
  EXPECT_EQ(widened(), before);
  EXPECT_TRUE(close(x + x, {2}, {2, 4}));
  EXPECT_EQ(widened(), before + 1);
}

}  // namespace
}  // namespace plugrad::test
