// New tensors: values, counts, errors; and reads of their elements.
#include <tests/core/expect.hpp>

#include <cmath>
#include <limits>

namespace plugrad::test {
namespace {
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Factories, FullZerosOnes) {
  for (DType dtype : kRealDTypes) {
    EXPECT_TRUE(close(zeros({2, 2}, dtype), {2, 2}, {0, 0, 0, 0}));
    EXPECT_TRUE(close(ones({}, dtype), {}, {1}));
    EXPECT_TRUE(close(full({3}, 1, dtype), {3}, {1, 1, 1}));
    EXPECT_TRUE(close(zeros({0, 2}, dtype), {0, 2}, {}));
    EXPECT_EQ(full_like(ones({2}, dtype), 0).dtype(), dtype);
    EXPECT_TRUE(close(ones_like(transpose(zeros({2, 3}, dtype))), {3, 2}, {1, 1, 1, 1, 1, 1}));
  }
  EXPECT_EQ(scalar(int64_t(1) << 62, DType::i64).item<int64_t>(), int64_t(1) << 62);
  EXPECT_EQ(full({1}, 0.1).item<float>(), 0.1f);
  EXPECT_EQ(full({1}, 2.0, DType::i64).item<int64_t>(), 2);
}

struct Range {
  Number start, end, step;
  DType dtype;
  std::vector<double> expected;
};
const Range kRanges[] = {
    {0, 5, 1, DType::i64, {0, 1, 2, 3, 4}},
    {5, 0, -2, DType::i64, {5, 3, 1}},
    {0, 5, -1, DType::i64, {}},
    {5, 5, 1, DType::i64, {}},
    {-3, 4, 3, DType::i64, {-3, 0, 3}},
    {0, 6, 3, DType::f64, {0, 3}},
    {0, 7, 3, DType::f32, {0, 3, 6}},
    {0, 1, 0.25, DType::f64, {0, 0.25, 0.5, 0.75}},
    {1, 0, -0.5, DType::f64, {1, 0.5}},
    {0.0, 2.5, 1.0, DType::f64, {0, 1, 2}},
    {2, 0.5, 1, DType::f64, {}},
    {0.0, 3.0, 1, DType::i64, {0, 1, 2}},
};

TEST(Factories, ArangeStopsBeforeTheEnd) {
  for (const Range& each : kRanges)
    EXPECT_TRUE(close(arange(each.start, each.end, each.step, each.dtype), {static_cast<int64_t>(each.expected.size())},
                      each.expected))
        << each.start.real() << ' ' << each.end.real() << ' ' << each.step.real();
  const Tensor tenths = arange(0, 1, 0.1, DType::f64);
  ASSERT_EQ(tenths.count(), 10);
  EXPECT_EQ(elements(tenths)[3], 3 * 0.1);  // start + i step, not a running sum
}

TEST(Factories, ArangeErrors) {
  EXPECT_TRUE(throws(Code::invalid, {"[arange]", "step 0"}, [] { arange(0, 1, 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[arange]", "finite"}, [] { arange(0, kInf); }));
  EXPECT_TRUE(throws(Code::invalid, {"[arange]", "finite"}, [] { arange(0, std::nan("")); }));
  EXPECT_TRUE(throws(Code::invalid, {"0.5", "i64"}, [] { arange(0, 3, 0.5, DType::i64); }));
  EXPECT_TRUE(throws(Code::invalid, {"2.5", "i64"}, [] { arange(0, 2.5, 1, DType::i64); }));
  EXPECT_TRUE(throws(Code::invalid, {"bool"}, [] { arange(0, 2, 1, DType::boolean); }));
}

TEST(Factories, NumbersThatDoNotFitTheDtype) {
  EXPECT_TRUE(throws(Code::invalid, {"0.5", "i64"}, [] { full({2}, 0.5, DType::i64); }));
  EXPECT_TRUE(throws(Code::invalid, {"2", "bool"}, [] { full({2}, 2, DType::boolean); }));
  EXPECT_TRUE(throws(Code::invalid, {"[fill]", "i64"}, [] { i64({1}).fill_(1e30); }));
  EXPECT_TRUE(throws(Code::invalid, {"nan", "i64"}, [] { i64({1}).mul_(std::nan("")); }));
}

TEST(Factories, ShapesThatCannotBe) {
  EXPECT_TRUE(throws(Code::invalid, {"(-1, 2)"}, [] { zeros({-1, 2}); }));
  EXPECT_TRUE(throws(Code::invalid, {"(4611686018427387904, 4)"}, [] { zeros({int64_t(1) << 62, 4}); }));
  EXPECT_EQ(zeros({int64_t(1) << 62, 4, 0}).count(), 0);
}

TEST(Factories, ElementsOfAnotherDtypeAreNotRead) {
  const Tensor x = counting({3}, DType::f32);
  EXPECT_TRUE(throws(Code::invalid, {"f32", "f64", "cast"}, [&] { x.to_vector<double>(); }));
  EXPECT_TRUE(throws(Code::invalid, {"[item]", "(3,)"}, [&] { x.item<double>(); }));
  EXPECT_EQ(slice(x, 0, 2, 3).item<double>(), 2);
  EXPECT_EQ(slice(x, 0, 2, 3).item<int64_t>(), 2);
  EXPECT_TRUE(reshape(slice(x, 0, 1, 2), {1, 1}).item<bool>());
  EXPECT_TRUE(throws(Code::invalid, {"3 elements", "(2,)", "2"}, [] { f64({1, 2, 3}, {2}); }));
}

TEST(Factories, AnUndefinedTensorIsAnErrorNotACrash) {
  const Tensor none;
  const std::function<void()> uses[] = {[&] { none.shape(); },
                                        [&] { none.dtype(); },
                                        [&] { none.device(); },
                                        [&] { none.count(); },
                                        [&] { none.rank(); },
                                        [&] { none.strides(); },
                                        [&] { none.size(0); },
                                        [&] { none.is_contiguous(); },
                                        [&] { none.is_leaf(); },
                                        [&] { none.grad(); },
                                        [&] { none.op_name(); },
                                        [&] { none.item<float>(); },
                                        [&] { none.to_vector<float>(); },
                                        [&] { none.detach(); },
                                        [&] { none.backward(); },
                                        [&] { exp(none); },
                                        [&] { none + 1; },
                                        [&] { sum(none); },
                                        [&] { reshape(none, {1}); },
                                        [&] { cast(none, DType::f32); },
                                        [&] { to(none, default_device()); },
                                        [&] { matmul(none, none); },
                                        [&] { zeros_like(none); },
                                        [&] { grad({f64({1}).requires_grad_() * 2}, {none}); }};
  for (const auto& use : uses) EXPECT_TRUE(throws(Code::invalid, {"undefined"}, use)) << &use - uses;
  EXPECT_FALSE(none.defined());
  EXPECT_FALSE(none.requires_grad());
}

}  // namespace
}  // namespace plugrad::test
