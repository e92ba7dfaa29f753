// Further arithmetic and statistics: refused operands, dtypes of results, and accuracy in halves. tests/torch compares
// results and gradients with PyTorch's.
#include <tests/core/expect.hpp>

#include <cmath>
#include <limits>

namespace plugrad::test {
namespace {
constexpr double kInf = HUGE_VAL, kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Moments, VariancesWithoutNan) {
  const Tensor x = f64({1, kNan, 3, kNan, 2, kNan}, {2, 3});
  EXPECT_TRUE(close(nanvar(x, {1}), {2}, {2, kNan}));
  EXPECT_TRUE(close(nanvar(x, {1}, true, 0), {2, 1}, {1, 0}));
  EXPECT_TRUE(close(nanstd(x, {1}, false, 0), {2}, {1, 0}));
  EXPECT_TRUE(close(nanstd(x), {}, {1}));
  EXPECT_TRUE(close(nanvar(f64({kNan, kNan}), {}, false, 0), {}, {kNan}));
  const Tensor leaf = f64({2, kNan, 2}).requires_grad_();
  EXPECT_TRUE(close(grad({nanstd(leaf)}, {leaf})[0], {3}, {0, 0, 0}));
}

TEST(Moments, DtypesOfResults) {
  const Tensor whole = i64({1, 2, 4}), half = of(DType::bf16, {1, 2, 4}, {3});
  EXPECT_EQ(logaddexp(whole, whole).dtype(), DType::f32);
  EXPECT_EQ(hypot(whole, half).dtype(), DType::bf16);
  EXPECT_EQ(float_power(whole, half).dtype(), DType::f64);
  EXPECT_TRUE(close(float_power(2, whole), {3}, {2, 4, 16}));
  EXPECT_EQ(copysign(whole, whole).dtype(), DType::f32);
  EXPECT_EQ(heaviside(whole, whole).dtype(), DType::i64);
  EXPECT_EQ(xlogy(whole, 2).dtype(), DType::f32);
  EXPECT_EQ(lerp(half, of(DType::f32, {1}, {}), 0.5).dtype(), DType::f32);
  EXPECT_EQ(trapezoid(whole).dtype(), DType::f32);
  EXPECT_EQ(gradient(whole)[0].dtype(), DType::f32);
  EXPECT_EQ(nansum(cast(whole, DType::i32)).dtype(), DType::i64);
  EXPECT_EQ(cov(half).dtype(), DType::bf16);
  EXPECT_EQ(add(whole, whole, 2).dtype(), DType::i64);
  EXPECT_EQ(div(whole, 2, std::nullopt).dtype(), DType::f32);
  EXPECT_EQ(div(whole, 2, RoundingMode::trunc).dtype(), DType::i64);
}

TEST(Moments, LargestNumbersOfEachDtype) {
  const struct {
    DType dtype;
    double largest;
  } rows[] = {{DType::f64, std::numeric_limits<double>::max()},
              {DType::f32, std::numeric_limits<float>::max()},
              {DType::f16, 65504},
              {DType::bf16, 0x1.fep127}};
  for (const auto& [dtype, largest] : rows)
    EXPECT_TRUE(close(nan_to_num(of(dtype, {kNan, kInf, -kInf, 1}, {4})), {4}, {0, largest, -largest, 1}));
}

TEST(Moments, EqualAndClose) {
  const Tensor x = f64({1, kNan});
  EXPECT_TRUE(equal(counting({2, 3}), counting({2, 3}, DType::f32)));
  EXPECT_FALSE(equal(counting({2, 3}), counting({3, 2})));
  EXPECT_FALSE(equal(x, x));
  EXPECT_TRUE(equal(zeros({0}), zeros({0})));
  EXPECT_FALSE(allclose(x, x));
  EXPECT_TRUE(allclose(x, x, 1e-5, 1e-8, true));
  EXPECT_TRUE(allclose(f64({1, 2}), f64({1.000001, 2})));
  EXPECT_TRUE(allclose(f64({1}), f64({1.5}), 0, 0.5));
}

TEST(Moments, HalvesAreRoundedOnce) {
  const Tensor x = full({4}, 1, DType::bf16), y = full({4}, 1.25, DType::bf16);
  EXPECT_TRUE(close(lerp(x, y, 0.03125), {4}, std::vector<double>(4, 1.0078125)));
  EXPECT_TRUE(close(logaddexp(x, x), {4}, std::vector<double>(4, 1.6953125)));
  EXPECT_TRUE(close(nanmean(full({300}, 1, DType::bf16)), {}, {1}));
}

TEST(Moments, RefuseWhatDoesNotFit) {
  const Tensor x = counting({2, 3}), whole = i64({1, 2});
  EXPECT_TRUE(throws(Code::invalid, {"[lerp]", "i64"}, [&] { lerp(whole, whole, 0.5); }));
  EXPECT_TRUE(throws(Code::invalid, {"[frac]", "i64"}, [&] { frac(whole); }));
  EXPECT_TRUE(throws(Code::invalid, {"[positive]", "bool"}, [] { positive(zeros({1}, DType::boolean)); }));
  EXPECT_TRUE(throws(Code::invalid, {"[nanmean]", "i64"}, [&] { nanmean(whole); }));
  EXPECT_TRUE(throws(Code::invalid, {"[nanvar]", "i64"}, [&] { nanvar(whole); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cov]", "(2, 3, 1)"}, [&] { cov(counting({2, 3, 1})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cov]", "fweights", "(3,)"}, [&] { cov(x, 1, i64({1, 2})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cov]", "fweights", "integer"}, [&] { cov(x, 1, f64({1, 2, 3})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cov]", "i64"}, [&] { cov(x, 1, {}, i64({1, 2, 3})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[trapezoid]", "(2,)", "(2, 3)"}, [&] { trapezoid(x, f64({1, 2})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[trapezoid]", "axis 2"}, [&] { trapezoid(x, 1, 2); }));
  EXPECT_TRUE(throws(Code::invalid, {"[gradient]", "edge_order"}, [&] { gradient(x, 1, {}, 3); }));
  EXPECT_TRUE(throws(Code::invalid, {"[gradient]", "axis 0", "3 or more"}, [&] { gradient(x, 1, {}, 2); }));
  EXPECT_TRUE(throws(Code::invalid, {"[gradient]", "3 spacings"}, [&] { gradient(x, std::vector<double>{1, 2, 3}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[gradient]", "(2,)"}, [&] { gradient(x, std::vector{f64({1, 2})}, {1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[logcumsumexp]", "i64"}, [&] { logcumsumexp(whole, 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[clamp]", "no bound"}, [&] { clamp(x, Tensor(), Tensor()); }));
  EXPECT_TRUE(throws(Code::invalid, {"[hypot]", "undefined"}, [&] { hypot(x, {}); }));
}

}  // namespace
}  // namespace plugrad::test
