// Compares distinct elements, places in sorted sequences, and counts with plain loops.
#include <tests/core/orders.hpp>

#include <cstdint>
#include <map>

namespace plugrad::test {
namespace {
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = HUGE_VAL;

TEST(Sets, DistinctElementsWithInverseAndCounts) {
  uint32_t seed = 50;
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::i64, DType::i8, DType::boolean})
    for (const Shape& shape : {Shape{1}, Shape{40}, Shape{3, 7}, Shape{}}) {
      std::vector<double> values = tied_values(dtype, shape.count(), ++seed);
      for (double& each : values) each = std::isnan(each) || each == 0 ? 0 : each;
      std::map<double, double> counts;
      for (const double each : values) ++counts[each];
      std::vector<double> keys, sizes, inverse;
      for (const auto& [key, count] : counts) keys.push_back(key), sizes.push_back(count);
      for (const double each : values) inverse.push_back(static_cast<double>(std::ranges::find(keys, each) - keys.begin()));
      const Unique all = unique(of(dtype, values, shape), true, true, true);
      const Shape length = {static_cast<int64_t>(keys.size())};
      EXPECT_TRUE(close(all.values, length, keys)) << dtype << shape;
      EXPECT_TRUE(close(all.inverse, shape, inverse)) << dtype << shape;
      EXPECT_TRUE(close(all.counts, length, sizes)) << dtype << shape;
      EXPECT_EQ(all.values.dtype(), dtype);
      EXPECT_FALSE(unique(of(dtype, values, shape)).counts.defined());
    }
}

TEST(Sets, EachNaNIsDistinct) {
  const Unique all = unique(f64({kNan, 1, kNan, 1}), true, true, true);
  EXPECT_TRUE(close(all.values, {3}, {1, kNan, kNan}));
  EXPECT_TRUE(close(all.inverse, {4}, {1, 0, 2, 0}));
  EXPECT_TRUE(close(all.counts, {3}, {2, 1, 1}));
}

TEST(Sets, DistinctSlices) {
  const Tensor x = f64({2, 1, 0, 5, 2, 1, 2, 0}, {4, 2});
  const Unique rows = unique(x, true, true, true, 0);
  EXPECT_TRUE(close(rows.values, {3, 2}, {0, 5, 2, 0, 2, 1}));
  EXPECT_TRUE(close(rows.inverse, {4}, {2, 0, 2, 1}));
  EXPECT_TRUE(close(rows.counts, {3}, {1, 1, 2}));
  EXPECT_TRUE(close(unique(f64({1, 0, 1, 2, 3, 2}, {2, 3}), true, false, false, -1).values, {2, 2}, {0, 1, 3, 2}));
  EXPECT_TRUE(throws(Code::invalid, {"[unique]", "(2, 0)"}, [] { unique(zeros({2, 0}), true, false, false, 0); }));
}

TEST(Sets, EqualNeighboursAreJoined) {
  const Unique all = unique_consecutive(i64({1, 1, 2, 2, 3, 1, 1, 2}), true, true);
  EXPECT_TRUE(close(all.values, {5}, {1, 2, 3, 1, 2}));
  EXPECT_TRUE(close(all.inverse, {8}, {0, 0, 1, 1, 2, 3, 3, 4}));
  EXPECT_TRUE(close(all.counts, {5}, {2, 2, 1, 2, 1}));
  EXPECT_TRUE(close(unique_consecutive(f64({1, 2, 1, 2, 3, 4}, {3, 2}), false, false, 0).values, {2, 2}, {1, 2, 3, 4}));
}

TEST(Sets, OfNoElements) {
  const Unique none = unique(zeros({0, 2}), true, true, true);
  EXPECT_TRUE(close(none.values, {0}, {}));
  EXPECT_TRUE(close(none.inverse, {0, 2}, {}));
  EXPECT_TRUE(close(none.counts, {0}, {}));
  EXPECT_TRUE(close(unique(zeros({0, 2}), true, true, false, 0).values, {0, 2}, {}));
  EXPECT_TRUE(close(isin(f64({1}), zeros({0}, DType::f64)), {1}, {0}));
  EXPECT_TRUE(close(isin(f64({1}), zeros({0}, DType::f64), false, true), {1}, {1}));
  EXPECT_TRUE(close(searchsorted(zeros({0}), f64({1, 2})), {2}, {0, 0}));
  EXPECT_TRUE(close(searchsorted(f64({1, 2}), zeros({0})), {0}, {}));
}

TEST(Sets, Membership) {
  const Tensor x = f64({1, kNan, 3, 4, -0.0, kInf}, {2, 3}), among = f64({3, kNan, 0, kInf, 9}, {5, 1});
  EXPECT_TRUE(close(isin(x, among), {2, 3}, {0, 0, 1, 0, 1, 1}));
  EXPECT_TRUE(close(isin(i64({1, 2, 3}), i64({2}), false, true), {3}, {1, 0, 1}));
  EXPECT_TRUE(close(isin(i64({1, 2, 3}), 2), {3}, {0, 1, 0}));
  EXPECT_TRUE(close(isin(i64({1, 2, 3}), f64({2.5, 3})), {3}, {0, 0, 1}));
  EXPECT_EQ(isin(i64({1}), 1).dtype(), DType::boolean);
}

// Returns how many elements of the sequence come before a value; with `right` also those equal to it.
double place_of(const std::vector<double>& sequence, double value, bool right) {
  double count = 0;
  for (const double each : sequence) count += right ? !must_swap(value, each, true) : must_swap(value, each, false);
  return count;
}

TEST(Sets, PlacesInSortedSequences) {
  uint32_t seed = 90;
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i64, DType::u8})
    for (int64_t n : {1, 2, 7, 8, 33})
      for (bool right : {false, true}) {
        const std::vector<double> values = tied_values(dtype, 24, ++seed);
        const Tensor sequence = sort(of(dtype, tied_values(dtype, n, ++seed), {n})).values;
        std::vector<double> expected;
        for (const double each : values) expected.push_back(place_of(elements(sequence), each, right));
        const Tensor x = of(dtype, values, {2, 3, 4});
        EXPECT_TRUE(close(searchsorted(sequence, x, false, right), {2, 3, 4}, expected)) << dtype << n << right;
        EXPECT_TRUE(close(bucketize(x, sequence, false, right), {2, 3, 4}, expected)) << dtype << n << right;
      }
}

TEST(Sets, PlacesLineByLine) {
  const Tensor sequences = f64({1, 3, 5, 2, 4, 6}, {2, 3});
  EXPECT_TRUE(close(searchsorted(sequences, f64({3, 0, 4, 9}, {2, 2})), {2, 2}, {1, 0, 1, 3}));
  EXPECT_TRUE(close(searchsorted(sequences, f64({3, 0, 4, 9}, {2, 2}), false, false, Side::right), {2, 2}, {2, 0, 2, 3}));
  EXPECT_TRUE(close(searchsorted(i64({1, 3}), 2.5), {}, {1}));
  EXPECT_EQ(searchsorted(i64({1, 3}), 2, true).dtype(), DType::i32);
  EXPECT_TRUE(
      throws(Code::invalid, {"[searchsorted]", "(2, 3)", "(3, 1)"}, [&] { searchsorted(sequences, zeros({3, 1})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[bucketize]", "(2, 3)"}, [&] { bucketize(sequences, sequences); }));
}

TEST(Sets, Histograms) {
  EXPECT_TRUE(close(histc(f64({1, 2, 5, 5, 0.3}), 4), {4}, {2, 1, 0, 2}));
  EXPECT_TRUE(close(histc(f64({1, 2, kNan, 5}), 4, 0, 3), {4}, {0, 1, 1, 0}));
  EXPECT_TRUE(close(histc(f64({1, 1}), 3), {3}, {0, 2, 0}));
  EXPECT_TRUE(close(histc(zeros({0}), 3), {3}, {0, 0, 0}));
  EXPECT_EQ(histc(zeros({2}, DType::f16), 3).dtype(), DType::f16);
  EXPECT_TRUE(throws(Code::invalid, {"[histc]", "bins"}, [] { histc(f64({1}), 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[histc]", "max"}, [] { histc(f64({1}), 3, 3, 1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[histc]", "nan"}, [] { histc(f64({1, kNan}), 3); }));
}

TEST(Sets, Counts) {
  EXPECT_TRUE(close(bincount(i64({1, 3, 1})), {4}, {0, 2, 0, 1}));
  EXPECT_TRUE(close(bincount(of(DType::u8, {1, 3, 1}, {3}), {}, 6), {6}, {0, 2, 0, 1, 0, 0}));
  EXPECT_TRUE(close(bincount(i64({1, 3, 1}), f64({0.5, 2, 1})), {4}, {0, 1.5, 0, 2}));
  EXPECT_EQ(bincount(i64({1}), i64({2})).dtype(), DType::f64);
  EXPECT_TRUE(close(bincount(i64({}), {}, 2), {2}, {0, 0}));
  EXPECT_TRUE(throws(Code::invalid, {"[bincount]", "-2"}, [] { bincount(i64({1, -2})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[bincount]", "(1, 1)"}, [] { bincount(i64({1}, {1, 1})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[bincount]", "f64"}, [] { bincount(f64({1})); }));
}

}  // namespace
}  // namespace plugrad::test
