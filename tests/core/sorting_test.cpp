// Compares orders along an axis with plain loops. Comments mark the expectations that come from PyTorch 2.15 and NumPy 2.
#include <tests/core/orders.hpp>

namespace plugrad::test {
namespace {
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = HUGE_VAL;

const Shape kShapes[] = {{1}, {2}, {13}, {600}, {3, 5}, {5, 3}, {2, 3, 4}, {4, 1, 3}, {2, 0, 3}, {0}};

// x in memory of several layouts, with the same elements.
std::vector<Tensor> laid_out(const Tensor& x) {
  std::vector<Tensor> all = {x};
  if (!x.rank() || !x.count()) return all;
  const int64_t n = x.size(-1);
  all.push_back(slice(cat({slice(x, -1, -1, -n - 1, -1), x}, -1), -1, n - 1, -2 * n - 1, -1));  // reversed
  if (x.rank() > 1) all.push_back(transpose(contiguous(transpose(x))));
  return all;
}

std::vector<int64_t> whole(const std::vector<double>& values) { return {values.begin(), values.end()}; }

TEST(Sorting, ArgsortIsAStableSort) {
  uint32_t seed = 1;
  for (DType dtype : kRealDTypes)
    for (const Shape& shape : kShapes) {
      const std::vector<double> values = tied_values(dtype, shape.count(), ++seed);
      for (const Tensor& x : laid_out(of(dtype, values, shape)))
        for (int axis = -1; axis < shape.rank(); ++axis)
          for (bool descending : {false, true}) {
            const Tensor order = argsort(x, axis, descending);
            EXPECT_EQ(order.dtype(), DType::i64);
            EXPECT_TRUE(close(order, shape, orders(values, shape, axis < 0 ? shape.rank() - 1 : axis, descending)))
                << dtype << shape << axis << descending;
          }
    }
}

TEST(Sorting, ValuesStandAtTheirIndices) {
  const Tensor x = f64({2, kNan, -0.0, 3, 0, -kInf, 2}, {7});
  const auto [values, indices] = sort(x);
  EXPECT_TRUE(same_bits(elements(values), {-kInf, -0.0, 0, 2, 2, 3, kNan}));
  EXPECT_TRUE(close(indices, {7}, {5, 2, 4, 0, 6, 3, 1}));
  EXPECT_TRUE(close(sort(x, 0, true).indices, {7}, {1, 3, 0, 6, 2, 4, 5}));
  EXPECT_TRUE(close(msort(f64({3, 1, 2, 4}, {2, 2})), {2, 2}, {2, 1, 3, 4}));
  EXPECT_TRUE(close(sort(i64({INT64_MAX, INT64_MIN, 0}), -1, true).indices, {3}, {0, 2, 1}));
}

TEST(Sorting, RankZeroIsALineOfOneElement) {
  const Tensor x = f64({3}, {});
  for (int axis : {0, -1}) {
    EXPECT_TRUE(close(argsort(x, axis), {}, {0}));
    EXPECT_TRUE(close(sort(x, axis).values, {}, {3}));
    EXPECT_TRUE(close(topk(x, 1, axis).values, {}, {3}));
    EXPECT_TRUE(close(kthvalue(x, 1, axis).indices, {}, {0}));
    EXPECT_TRUE(close(max(x, axis).values, {}, {3}));
    EXPECT_TRUE(close(min(x, axis, true).indices, {}, {0}));
    EXPECT_TRUE(close(median(x, axis).values, {}, {3}));
    EXPECT_TRUE(close(mode(x, axis).values, {}, {3}));
    EXPECT_TRUE(close(cummax(x, axis).values, {}, {3}));
  }
  EXPECT_TRUE(close(median(x), {}, {3}));
  EXPECT_TRUE(throws(Code::invalid, {"[sort]", "axis 1"}, [&] { sort(x, 1); }));
}

// The results of PyTorch, except where PyTorch does not define the choice among equal elements.
TEST(Sorting, ResultsOfPyTorch) {
  const Tensor x = f64({1, 2, 2, kNan, 1, 3, 3, 1, 1, 0}, {2, 5});
  const auto expect = [](const ValuesIndices& pair, const Shape& shape, const std::vector<double>& values,
                         const std::vector<double>& indices) {
    EXPECT_TRUE(close(pair.values, shape, values));
    EXPECT_TRUE(close(pair.indices, shape, indices));
    EXPECT_EQ(pair.indices.dtype(), DType::i64);
  };
  expect(max(x, 1), {2}, {kNan, 3}, {3, 0});
  expect(min(x, -1, true), {2, 1}, {kNan, 0}, {3, 4});
  expect(max(x, 0), {5}, {3, 3, 2, kNan, 1}, {1, 1, 0, 0, 0});
  expect(median(x, 1), {2}, {kNan, 1}, {3, 3});
  expect(median(x, 0, true), {1, 5}, {1, 2, 1, kNan, 0}, {0, 0, 1, 0, 1});
  expect(nanmedian(x, 1), {2}, {1, 1}, {4, 3});
  expect(nanmedian(f64({kNan, kNan, 5, kNan, 7, 6}, {2, 3}), 1), {2}, {5, 6}, {2, 2});
  expect(mode(x, 1), {2}, {1, 1}, {4, 3});  // PyTorch finds 2 in the first line, with NaN, but 1 in 1, 1, 2, 2, NaN
  expect(kthvalue(x, 2, 1), {2}, {1, 1}, {4, 2});
  expect(kthvalue(x, 5, -1, true), {2, 1}, {kNan, 3}, {3, 1});
  expect(topk(x, 2, 1), {2, 2}, {kNan, 2, 3, 3}, {3, 1, 0, 1});
  expect(topk(x, 1, 0, false), {1, 5}, {1, 2, 1, 1, 0}, {0, 0, 1, 1, 1});
  expect(topk(x, 0, 1), {2, 0}, {}, {});
  expect(cummax(x, 1), {2, 5}, {1, 2, 2, kNan, kNan, 3, 3, 3, 3, 3}, {0, 1, 2, 3, 3, 0, 1, 1, 1, 1});
  expect(cummin(x, 1), {2, 5}, {1, 1, 1, kNan, kNan, 3, 3, 1, 1, 0}, {0, 0, 0, 3, 3, 0, 1, 2, 3, 4});
}

// k is much smaller than the line.
TEST(Sorting, TheFirstOfLongLines) {
  uint32_t seed = 99;
  for (DType dtype : kRealDTypes)
    for (const Shape& shape : {Shape{600}, Shape{3, 150}, Shape{150, 3}, Shape{2, 300, 2}})
      for (int axis = 0; axis < shape.rank(); ++axis)
        for (bool largest : {false, true}) {
          const std::vector<double> values = tied_values(dtype, shape.count(), ++seed);
          const Tensor order = i64(whole(orders(values, shape, axis, largest)), shape);
          for (const Tensor& x : laid_out(of(dtype, values, shape)))
            for (int64_t k : {1, 2, 30}) {
              if (k > shape[static_cast<size_t>(axis)]) continue;
              const Tensor first = slice(order, axis, 0, k);
              const ValuesIndices best = topk(x, k, axis, largest);
              EXPECT_TRUE(close(best.indices, first.shape(), elements(first))) << dtype << shape << axis << largest << k;
              EXPECT_TRUE(same_bits(elements(best.values), elements(gather(x, axis, first))));
              if (largest) continue;
              const Tensor last = slice(order, axis, k - 1, k);
              EXPECT_TRUE(close(kthvalue(x, k, axis, true).indices, last.shape(), elements(last)));
            }
        }
}

// Lines in which nearly every element, or no element, belongs before the elements found so far.
TEST(Sorting, TheFirstOfLinesInOrder) {
  std::vector<double> rising, nans(2000, kNan);
  for (int i = 0; i < 2000; ++i) rising.push_back(i);
  nans[1500] = 3;
  for (DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64}) {
    const Tensor x = of(dtype, rising, {2000});
    EXPECT_TRUE(close(topk(x, 3).values, {3}, {1999, 1998, 1997})) << dtype;
    EXPECT_TRUE(close(topk(x, 3, 0, false).values, {3}, {0, 1, 2})) << dtype;
    EXPECT_TRUE(close(topk(zeros_like(x), 3).indices, {3}, {0, 1, 2})) << dtype;
  }
  EXPECT_TRUE(close(topk(f64(nans), 3).indices, {3}, {0, 1, 2}));
  EXPECT_TRUE(close(topk(f64(nans), 3, 0, false).indices, {3}, {1500, 0, 1}));
}

TEST(Sorting, MediansOfAllElements) {
  EXPECT_TRUE(close(median(f64({4, 1, 3, 2}, {2, 2})), {}, {2}));
  EXPECT_TRUE(close(median(f64({4, kNan, 3})), {}, {kNan}));
  EXPECT_TRUE(close(nanmedian(f64({4, kNan, 3, kNan})), {}, {3}));
  EXPECT_TRUE(close(nanmedian(f64({kNan, kNan})), {}, {kNan}));
  EXPECT_TRUE(close(median(zeros({0}, DType::f64)), {}, {kNan}));
  EXPECT_TRUE(close(median(i64({7, 5})), {}, {5}));
}

TEST(Sorting, EveryDtypeHasAnOrder) {
  for (DType dtype : kRealDTypes) {
    const Tensor x = of(dtype, {1, 0, 1, 1}, {4});
    for (const ValuesIndices& pair :
         {sort(x), topk(x, 2), kthvalue(x, 3), max(x, 0), min(x, 0), median(x, 0), mode(x), cummax(x, 0), cummin(x, 0)}) {
      EXPECT_EQ(pair.values.dtype(), dtype);
      EXPECT_EQ(pair.indices.dtype(), DType::i64);
      EXPECT_TRUE(close(pair.values, pair.indices.shape(), elements(gather(x, 0, reshape(pair.indices, {-1})))));
    }
    EXPECT_TRUE(close(min(x, 0).indices, {}, {1})) << dtype;
    EXPECT_TRUE(close(median(x), {}, {1})) << dtype;
    EXPECT_TRUE(close(cummin(x, 0).values, {4}, {1, 0, 0, 0})) << dtype;
  }
}

// The gradient goes to the chosen element; for the median of all elements and amax, to all elements that equal it.
TEST(Sorting, GradientsAtTies) {
  const struct {
    const char* name;
    Tensor (*apply)(const Tensor& x);
    std::vector<double> gradient;
  } rows[] = {
      {"sort", [](const Tensor& x) { return sort(x, 0).values * f64({1, 2, 3, 4}); }, {2, 1, 3, 4}},
      {"topk", [](const Tensor& x) { return topk(x, 2).values; }, {1, 0, 1, 0}},
      {"max", [](const Tensor& x) { return max(x, 0).values; }, {1, 0, 0, 0}},
      {"amax", [](const Tensor& x) { return amax(x, {0}); }, {1 / 3.0, 0, 1 / 3.0, 1 / 3.0}},
      {"median of a line", [](const Tensor& x) { return median(x, 0).values; }, {1, 0, 0, 0}},
      {"median", [](const Tensor& x) { return median(x); }, {1 / 3.0, 0, 1 / 3.0, 1 / 3.0}},
      {"mode", [](const Tensor& x) { return mode(x).values; }, {0, 0, 0, 1}},
      {"cummax", [](const Tensor& x) { return cummax(x, 0).values; }, {2, 0, 1, 1}},
      {"quantile", [](const Tensor& x) { return quantile(x, 0.5); }, {0.5, 0, 0.5, 0}},
  };
  for (const auto& each : rows) {
    const Tensor x = f64({2, 1, 2, 2}).requires_grad_();
    EXPECT_TRUE(close(grad({sum(each.apply(x))}, {x})[0], {4}, each.gradient, 1e-15)) << each.name;
  }
}

// numpy.quantile and numpy.nanquantile of the same elements.
TEST(Sorting, QuantilesOfNumPy) {
  const Tensor x = f64({4, 1, 3, 2, 8, 5}, {2, 3});
  const struct {
    Interpolation interpolation;
    std::vector<double> quartiles;
  } rows[] = {{Interpolation::linear, {1, 2.25, 3.5, 4.75, 8}},
              {Interpolation::lower, {1, 2, 3, 4, 8}},
              {Interpolation::higher, {1, 3, 4, 5, 8}},
              {Interpolation::midpoint, {1, 2.5, 3.5, 4.5, 8}},
              {Interpolation::nearest, {1, 2, 3, 5, 8}}};
  for (const auto& each : rows)
    EXPECT_TRUE(close(quantile(x, {0, 0.25, 0.5, 0.75, 1}, {}, false, each.interpolation), {5}, each.quartiles, 1e-15));
  EXPECT_TRUE(close(quantile(x, 0.25, {1}), {2}, {2, 3.5}));
  EXPECT_TRUE(close(quantile(x, 0.25, {0}, true), {1, 3}, {2.5, 2.75, 3.5}));
  EXPECT_TRUE(close(quantile(x, f64({0.5, 1}), {-1}, true), {2, 2, 1}, {3, 5, 4, 8}));
  EXPECT_TRUE(close(quantile(i64({1, 2, 4}), 0.75), {}, {3}));
  const Tensor holes = f64({kNan, 1, 3, kNan, kNan, kNan}, {2, 3});
  EXPECT_TRUE(close(quantile(holes, 0.5, {1}), {2}, {kNan, kNan}));
  EXPECT_TRUE(close(nanquantile(holes, 0.25, {1}), {2}, {1.5, kNan}));
  EXPECT_TRUE(close(quantile(f64({kInf, kInf, 1, 2, -kInf}), {0, 0.25, 0.75, 0.9}), {4}, {-kInf, 1, kInf, kInf}));
}

TEST(Sorting, Differences) {
  const Tensor x = f64({1, 4, 9, 16, 2, 3}, {2, 3});
  EXPECT_TRUE(close(diff(x), {2, 2}, {3, 5, -14, 1}));
  EXPECT_TRUE(close(diff(x, 2), {2, 1}, {2, 15}));
  EXPECT_TRUE(close(diff(x, 5, 0), {0, 3}, {}));
  EXPECT_TRUE(close(diff(x, 0), {2, 3}, elements(x)));
  EXPECT_TRUE(close(diff(x, 1, 1, zeros({2, 1}, DType::f64), x), {2, 6}, {1, 3, 5, -8, 3, 5, 16, -14, 1, 13, -14, 1}));
  EXPECT_TRUE(close(diff(of(DType::boolean, {1, 0, 0}, {3})), {2}, {1, 0}));
  EXPECT_EQ(diff(of(DType::boolean, {1, 0, 0}, {3})).dtype(), DType::boolean);
}

TEST(Sorting, SmallestAndLargest) {
  const Tensor x = f64({1, 4, 9, 16, 2, 3}, {2, 3});
  const auto [low, high] = aminmax(x, {1}, true);
  EXPECT_TRUE(close(low, {2, 1}, {1, 2}));
  EXPECT_TRUE(close(high, {2, 1}, {9, 16}));
  EXPECT_TRUE(close(amax(x), {}, {16}));
  EXPECT_TRUE(close(amin(x, {0}), {3}, {1, 2, 3}));
}

TEST(Sorting, ErrorsNameTheFunction) {
  const Tensor x = f64({1, 2, 3}), none = zeros({2, 0}, DType::f64);
  EXPECT_TRUE(throws(Code::invalid, {"[topk]", "4", "3 elements"}, [&] { topk(x, 4); }));
  EXPECT_TRUE(throws(Code::invalid, {"[topk]", "-1"}, [&] { topk(x, -1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[kthvalue]", "k is 0"}, [&] { kthvalue(x, 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[argsort]", "axis 2"}, [&] { argsort(x, 2); }));
  EXPECT_TRUE(throws(Code::invalid, {"[max]", "no elements"}, [&] { max(none, 1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[median]", "no elements"}, [&] { median(none, 1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[mode]", "no elements"}, [&] { mode(none); }));
  EXPECT_TRUE(throws(Code::invalid, {"[quantile]", "1.5"}, [&] { quantile(x, 1.5); }));
  EXPECT_TRUE(throws(Code::invalid, {"[quantile]", "outside"}, [&] { quantile(x, f64({0, 2})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[nanquantile]", "no elements"}, [&] { nanquantile(none, 0.5, {1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[diff]", "-1"}, [&] { diff(x, -1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[sort]", "undefined"}, [] { sort({}); }));
  EXPECT_TRUE(close(median(none, 0).values, {0}, {}));
  EXPECT_TRUE(close(sort(none).values, {2, 0}, {}));
}

}  // namespace
}  // namespace plugrad::test
