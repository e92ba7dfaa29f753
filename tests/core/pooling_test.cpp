// Compares pooling with plain loops over windows.
#include <tests/core/expect.hpp>

#include <algorithm>
#include <cmath>

namespace plugrad::test {
namespace {

struct Row {
  const char* name;
  Shape x;
  int64_t size, stride, padding, dilation;
};
const Row kRows[] = {
    {"1d", {2, 3, 7}, 2, 2, 0, 1},
    {"1d overlapping", {2, 7}, 3, 1, 1, 1},
    {"1d dilated", {1, 2, 9}, 2, 2, 1, 3},
    {"2d", {2, 2, 4, 6}, 2, 2, 0, 1},
    {"2d overlapping", {1, 2, 5, 5}, 3, 2, 1, 1},
    {"2d all", {1, 1, 3, 3}, 3, 3, 0, 1},
    {"2d no batch", {0, 2, 4, 4}, 2, 2, 0, 1},
};
// The number of spatial axes, which the name states.
size_t axes_of(const Row& row) { return static_cast<size_t>(row.name[0] - '0'); }

Shape result_shape(const Row& row) {
  Shape out = row.x;
  for (size_t i = out.size() - axes_of(row); i < out.size(); ++i)
    out[i] = (row.x[i] + 2 * row.padding - row.dilation * (row.size - 1) - 1) / row.stride + 1;
  return out;
}

// The elements of x in the window of the result at `at`.
std::vector<double> window(const Row& row, const Shape& at, const std::vector<double>& x) {
  const size_t axes = axes_of(row), first = at.size() - axes;
  std::vector<double> all;
  for (const Shape& in : positions(axes == 1 ? Shape{row.size} : Shape{row.size, row.size})) {
    Shape position = at;
    bool inside = true;
    for (size_t i = 0; i < axes; ++i) {
      position[first + i] = at[first + i] * row.stride - row.padding + in[i] * row.dilation;
      inside = inside && position[first + i] >= 0 && position[first + i] < row.x[first + i];
    }
    if (inside) all.push_back(x[static_cast<size_t>(offset(position, row.x))]);
  }
  return all;
}

TEST(Pooling, LargestOfEachWindow) {
  for (const Row& row : kRows) {
    const auto x = spread(row.x.count(), -3, -1);
    std::vector<double> expected;
    for (const Shape& at : positions(result_shape(row))) expected.push_back(std::ranges::max(window(row, at, x)));
    const auto pool = axes_of(row) == 1 ? max_pool1d : max_pool2d;
    const Tensor strided = transpose(contiguous(transpose(f64(x, row.x))));
    for (const Tensor& each : {f64(x, row.x), strided})
      EXPECT_TRUE(
          close(pool(each, {row.size}, {row.stride}, {row.padding}, {row.dilation}, false), result_shape(row), expected))
          << row.name;
  }
}

Tensor means(const Row& row, const Tensor& x, bool counts_padding) {
  const Shape size = {row.size}, stride = {row.stride}, padding = {row.padding};
  if (axes_of(row) == 1) return avg_pool1d(x, size, stride, padding, false, counts_padding);
  return avg_pool2d(x, size, stride, padding, false, counts_padding);
}

TEST(Pooling, MeanOfEachWindow) {
  for (const Row& row : kRows) {
    if (row.dilation != 1) continue;
    const auto x = spread(row.x.count(), -3, 5);
    for (bool counts_padding : {true, false}) {
      std::vector<double> expected;
      for (const Shape& at : positions(result_shape(row))) {
        double total = 0;
        const auto elements = window(row, at, x);
        for (double each : elements) total += each;
        expected.push_back(total / (counts_padding
                                        ? std::pow(static_cast<double>(row.size), static_cast<double>(axes_of(row)))
                                        : static_cast<double>(elements.size())));
      }
      EXPECT_TRUE(close(means(row, f64(x, row.x), counts_padding), result_shape(row), expected, 1e-14)) << row.name;
    }
  }
}

TEST(Pooling, TheFirstOfEqualElementsGetsTheGradient) {
  const Tensor x = f64({1, 1, 0, 2, 2, 2, 2, 0}, {1, 2, 4}).requires_grad_();
  EXPECT_TRUE(close(grad({sum(max_pool1d(x, {2}))}, {x})[0], {1, 2, 4}, {1, 0, 0, 1, 1, 0, 1, 0}));
  EXPECT_TRUE(close(grad({sum(max_pool2d(x, {2}))}, {x})[0], {1, 2, 4}, {0, 0, 0, 1, 1, 0, 0, 0}));
  const Tensor infinite = full({1, 2}, -HUGE_VAL, DType::f64);
  EXPECT_TRUE(close(max_pool1d(infinite, {2}, {1}, {1}), {1, 3}, {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL}));
}

// A window that contains only -inf, partly padding, returns the position of an element of x.
TEST(Pooling, PositionsAreThoseOfElementsOfX) {
  const Tensor infinite = full({1, 2}, -HUGE_VAL, DType::f64);
  EXPECT_TRUE(close(max_pool1d_with_indices(infinite, {2}, {1}, {1}).indices, {1, 3}, {0, 0, 1}));
  // The first window is entirely in the padding.
  const auto [values, indices] = max_pool1d_with_indices(f64({1, 2, 3, 4}, {1, 4}), {2}, {1}, {1}, {5});
  EXPECT_TRUE(close(values, {1, 1}, {-HUGE_VAL}));
  EXPECT_TRUE(close(indices, {1, 1}, {0}));
}

TEST(Pooling, AdaptiveWindowsTakeNothingFromOthers) {
  const Tensor x = f64({1, 2, HUGE_VAL, 4, 5}, {1, 5});
  EXPECT_TRUE(close(adaptive_avg_pool1d(x, {4}), {1, 4}, {1.5, HUGE_VAL, HUGE_VAL, 4.5}));
}

TEST(Pooling, AdaptiveWindowsCoverX) {
  for (const Shape& out : {Shape{1, 1}, Shape{2, 3}, Shape{5, 7}, Shape{6, 2}, Shape{3}}) {
    const int64_t h = out[0], w = out[out.size() - 1];
    const auto x = spread(2 * 5 * 7, -1, 1);
    std::vector<double> expected;
    for (const Shape& at : positions({2, h, w})) {
      double total = 0, count = 0;
      for (int64_t i = at[1] * 5 / h; i < (at[1] * 5 + 5 + h - 1) / h; ++i)
        for (int64_t j = at[2] * 7 / w; j < (at[2] * 7 + 7 + w - 1) / w; ++j)
          total += x[static_cast<size_t>(offset({at[0], i, j}, {2, 5, 7}))], ++count;
      expected.push_back(total / count);
    }
    EXPECT_TRUE(close(adaptive_avg_pool2d(f64(x, {2, 5, 7}), out), {2, h, w}, expected, 1e-14)) << out;
    EXPECT_TRUE(close(adaptive_avg_pool2d(of(DType::f32, x, {2, 5, 7}), out), {2, h, w}, expected, 1e-6)) << out;
  }
}

TEST(Pooling, ErrorsNameWhatDoesNotFit) {
  const Tensor x = counting({1, 4, 4});
  EXPECT_TRUE(throws(Code::invalid, {"[max_pool2d]", "(4, 4)"}, [] { max_pool2d(counting({4, 4}), {2}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[max_pool2d]", "spans 5"}, [&] { max_pool2d(x, {5}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[avg_pool2d]", "padding", "half"}, [&] { avg_pool2d(x, {2}, {1}, {2}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[avg_pool1d]", "kernel_size"}, [&] { avg_pool1d(x, {0}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[max_pool1d]", "i64"}, [] { max_pool1d(i64({1, 2}, {1, 2}), {2}); }));
  EXPECT_TRUE(
      throws(Code::invalid, {"[avg_pool2d]", "divisor_override"}, [&] { avg_pool2d(x, {2}, {}, {0}, false, true, 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[max_pool1d]", "(1, 0)"}, [] { max_pool1d(zeros({1, 0}), {1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[max_unpool2d]", "(1, 4, 4)", "(1, 4)"},
                     [&] { max_unpool2d(x, i64({0, 1, 2, 3}, {1, 4}), {2}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[max_unpool2d]", "output_size", "(11, 8)"},
                     [&] { max_unpool2d(x, zeros({1, 4, 4}, DType::i64), {2}, {}, {0}, {11, 8}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[lp_pool2d]", "norm_type"}, [&] { lp_pool2d(x, 0, {2}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[adaptive_avg_pool2d]", "(2,)"}, [] { adaptive_avg_pool2d(f64({1, 2}), {1}); }));
}

// --- Arguments that resampling refuses. tests/torch/spatial_rows.cpp and spatial_rows.cpp test values and gradients.

TEST(Resampling, InterpolateRefuses) {
  const Tensor x = counting({1, 2, 3, 4});
  const auto refused = [&](const std::vector<std::string>& words, const Shape& size, const std::vector<double>& factors,
                           Resampling mode) {
    EXPECT_TRUE(throws(Code::invalid, words, [&] { interpolate(x, size, factors, mode); }));
  };
  refused({"[interpolate]", "give one of them"}, {}, {}, Resampling::nearest);
  refused({"[interpolate]", "give one of them"}, {2, 2}, {2}, Resampling::nearest);
  refused({"[interpolate]", "(1, 2, 3, 4)", "(n, c, l)"}, {2, 2}, {}, Resampling::linear);
  refused({"[interpolate]", "1 or more"}, {}, {0.1}, Resampling::nearest);
  refused({"[interpolate]", "above 0"}, {}, {-1}, Resampling::nearest);
  refused({"[interpolate]", "3 scale factors", "2 axes"}, {}, {2, 2, 2}, Resampling::nearest);
  EXPECT_TRUE(throws(Code::invalid, {"[interpolate]", "align_corners"},
                     [&] { interpolate(x, {2, 2}, {}, Resampling::nearest, true); }));
  EXPECT_TRUE(throws(Code::invalid, {"[interpolate]", "antialias"},
                     [&] { interpolate(x, {2, 2}, {}, Resampling::nearest, {}, {}, true); }));
}

TEST(Resampling, GridSampleRefuses) {
  const Tensor x = counting({1, 2, 3, 4}), grid = zeros({1, 2, 2, 2}, DType::f64);
  EXPECT_TRUE(
      throws(Code::invalid, {"[grid_sample]", "this mode", "bicubic"}, [&] { grid_sample(x, grid, Resampling::area); }));
  EXPECT_TRUE(
      throws(Code::invalid, {"[grid_sample]", "(1, 2, 2, 3)"}, [&] { grid_sample(x, zeros({1, 2, 2, 3}, DType::f64)); }));
  EXPECT_TRUE(
      throws(Code::invalid, {"[affine_grid]", "(2, 3)"}, [] { affine_grid(zeros({2, 3}, DType::f64), {1, 1, 2, 2}); }));
}

}  // namespace
}  // namespace plugrad::test
