// The ops of networks on lines that exceed a block's registers, sums that are cut into segments, and tensors of several
// tiles. The CPU computes the expected values.
#include <plugrad/plugrad.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace plugrad::test {
namespace {

using Inputs = std::vector<Tensor>;
using Network = std::function<Tensor(const Inputs&)>;

Tensor uniform(const Shape& shape, DType dtype = DType::f32) { return rand(shape, dtype, Device("cpu"), -1, 1); }
std::vector<double> numbers(const Tensor& x) { return cast(to(x, Device("cpu")), DType::f64).to_vector<double>(); }

void expect_close(const Tensor& want, const Tensor& got, double eps, const std::string& what) {
  ASSERT_EQ(want.shape(), got.shape()) << what;
  const bool is_double = want.dtype() == DType::f64;
  const double one = is_double ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const std::vector<double> a = numbers(want), b = numbers(got);
  int differ = 0;
  for (size_t i = 0; i < a.size() && differ < 5; ++i)
    if (!(std::abs(a[i] - b[i]) <= eps * one * std::max(1.0, std::abs(a[i])))) {
      ADD_FAILURE() << what << ", element " << i << ": " << b[i] << " instead of " << a[i];
      ++differ;
    }
}

// The result of f, and the gradients of all inputs.
Inputs results_of(const Network& f, const Inputs& inputs, const Device& device) {
  Inputs leaves;
  for (const Tensor& x : inputs) leaves.push_back(to(clone(x), device).requires_grad_());
  const Tensor out = f(leaves), weights = to(reshape(arange(0, 7, 1), {7}), device);
  const Tensor flat = reshape(out, {-1});
  const int64_t n = flat.count() / 7 * 7;
  const Tensor seeds = n ? reshape(expand(weights / 4 - 0.5, {n / 7, 7}), {n}) : Tensor();
  Inputs results = n ? grad({sum(slice(flat, 0, 0, n) * seeds)}, leaves) : grad({sum(flat)}, leaves);
  results.push_back(out.detach());
  return results;
}

void compare(const Network& f, const Inputs& inputs, double eps) {
  SCOPED_TRACE("input of rank " + std::to_string(inputs[0].rank()) + ", " + std::to_string(inputs[0].count()) + " elements");
  const Inputs want = results_of(f, inputs, Device("cpu")), got = results_of(f, inputs, default_device());
  for (size_t i = 0; i < want.size(); ++i)
    expect_close(want[i], got[i], eps, i + 1 == want.size() ? "result" : "gradient of input " + std::to_string(i));
}

class NetworkSizes : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_device("cpu")) GTEST_SKIP() << "no plugin for cpu";
  }
};

TEST_F(NetworkSizes, SoftmaxOfLinesOfAnyLength) {
  for (const Shape& shape : {Shape{3000, 10}, Shape{70, 64}, Shape{33, 1001}, Shape{2, 4100}, Shape{2, 40000}})
    for (const int axis : {0, 1})
      compare([&](const Inputs& x) { return softmax(x[0] * 9, axis) * 50; }, {uniform(shape)}, 20000);
}

TEST_F(NetworkSizes, RowNormsOfAnyLength) {
  const Shape shapes[] = {{3000, 10}, {1, 40}, {33, 1001}, {3, 4100}, {2, 40000}, {9000, 3}};
  for (const Shape& shape : shapes) {
    const Shape row{shape[1]};
    const Inputs inputs{uniform(shape, DType::f64), uniform(row, DType::f64), uniform(row, DType::f64)};
    compare([&](const Inputs& x) { return layer_norm(x[0] + 3, row, x[1], x[2]); }, inputs, 1e6);
    compare([&](const Inputs& x) { return rms_norm(x[0] + 3, row, x[1]) + x[2]; }, inputs, 1e6);
    compare([&](const Inputs& x) { return layer_norm(x[0], row, x[1], x[2]); }, {uniform(shape), uniform(row), uniform(row)},
            1e5);
  }
}

TEST_F(NetworkSizes, BatchNormsOfChannelsThatAreCut) {
  for (const Shape& shape : {Shape{7, 3, 50, 50}, Shape{9000, 5}, Shape{1, 2, 20000}, Shape{64, 300, 2}, Shape{3, 2, 33}}) {
    const Shape channels{shape[1]};
    const Inputs inputs{uniform(shape, DType::f64), uniform(channels, DType::f64), uniform(channels, DType::f64)};
    compare([](const Inputs& x) { return batch_norm(x[0] + 3, {}, {}, x[1], x[2], true); }, inputs, 1e6);
  }
}

TEST_F(NetworkSizes, RunningSumsOfLinesThatAreCut) {
  for (const Shape& shape : {Shape{(1 << 20) + 3}, Shape{3, 100000}, Shape{100000, 3}, Shape{40, 5000}})
    for (int axis = 0; axis < shape.rank(); ++axis)
      compare([&](const Inputs& x) { return cumsum(x[0], axis); }, {uniform(shape, DType::f64)}, 1e5);
  const Tensor whole = cast(uniform({2, 70000}, DType::f64) * 1e6, DType::i64);
  expect_close(cumsum(whole, 1), cumsum(to(whole, default_device()), 1), 0, "integers");
}

TEST_F(NetworkSizes, TheFirstOfLongLines) {
  for (const int64_t kept : {int64_t{1}, int64_t{17}, int64_t{512}, int64_t{1024}, int64_t{1025}})
    for (const bool largest : {false, true}) {
      const Tensor x = round(uniform({6, 4000}) * 900);  // many are equal
      const auto first = [&](const Tensor& y) { return topk(y, kept, 1, largest).indices; };
      expect_close(first(x), first(to(x, default_device())), 0, std::to_string(kept));
    }
}

// Lines of one part, of two parts, and of a number of parts that leaves the last merge incomplete; many elements are equal.
TEST_F(NetworkSizes, SortsLinesOfAnyLength) {
  const auto decompositions = [] { return default_device().counters().decompositions; };
  const uint64_t before = decompositions();
  for (const int64_t length : {1023, 1024, 1025, 2048, 2049, 3100, 9000})
    for (const int axis : {0, 1})
      for (const DType dtype : {DType::f32, DType::i64}) {
        const Shape shape = axis ? Shape{3, length} : Shape{length, 3};
        Tensor x = cast(round(uniform(shape) * 700), dtype);
        if (dtype == DType::f32) x = masked_fill(x, eq(x, 5), std::nan(""));
        for (const bool descending : {false, true})
          expect_close(argsort(x, axis, descending), argsort(to(x, default_device()), axis, descending), 0,
                       std::to_string(length) + " along axis " + std::to_string(axis));
      }
  EXPECT_EQ(decompositions(), before);
}

TEST_F(NetworkSizes, AttentionOfSeveralTiles) {
  struct Case {
    Shape batch, keys;
    int64_t l, s, e, v;
    bool causal;
  };
  const Case cases[] = {{{2, 3}, {2, 3}, 70, 150, 40, 30, false},
                        {{1}, {1}, 140, 140, 70, 200, true},
                        {{4}, {1}, 5, 300, 64, 64, false},
                        {{2}, {2}, 200, 90, 3, 129, true},
                        // Few queries: blocks share their keys.
                        {{1}, {1}, 1, 700, 64, 64, false},
                        {{1}, {1}, 3, 640, 20, 130, false},
                        {{1}, {1}, 100, 400, 16, 16, true}};
  for (const Case& c : cases) {
    const auto shape = [](Shape batch, int64_t rows, int64_t columns) {
      batch.push_back(rows);
      batch.push_back(columns);
      return batch;
    };
    const Inputs inputs{uniform(shape(c.batch, c.l, c.e)), uniform(shape(c.keys, c.s, c.e)),
                        uniform(shape(c.keys, c.s, c.v))};
    compare([&](const Inputs& x) { return scaled_dot_product_attention(x[0] * 3, x[1] * 2, x[2], {}, 0, c.causal); }, inputs,
            20000);
  }
}

TEST_F(NetworkSizes, ConvolutionsOfSeveralTilesAndSegments) {
  struct Case {
    Shape x, weight;
    int64_t stride, padding, groups;
  };
  const Case cases[] = {{{2, 5, 40, 41}, {70, 5, 3, 3}, 1, 1, 1},
                        {{1, 300, 6, 7}, {10, 300, 3, 3}, 1, 1, 1},
                        {{3, 8, 30, 31}, {12, 4, 5, 3}, 2, 2, 2},
                        {{2, 40, 25, 25}, {40, 1, 3, 3}, 1, 1, 40}};
  for (const Case& c : cases)
    compare([&](const Inputs& x) { return conv2d(x[0], x[1], x[2], {c.stride}, {c.padding}, {1}, c.groups); },
            {uniform(c.x), uniform(c.weight), uniform({c.weight[0]})}, 20000);
}

TEST_F(NetworkSizes, GradientsOfMaximaInAnyOrder) {
  const bool before = deterministic();
  for (const bool in_order : {false, true}) {
    set_deterministic(in_order);
    compare([](const Inputs& x) { return max_pool2d(x[0], {3, 3}, {2, 2}, {1, 1}); }, {uniform({3, 5, 40, 61})}, 100);
  }
  set_deterministic(before);
}

}  // namespace
}  // namespace plugrad::test
