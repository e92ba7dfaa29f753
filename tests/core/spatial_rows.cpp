// Gradients of functions of images: pooling, transposed convolution, windows as columns, and resampling.
#include <tests/core/gradient_rows.hpp>

namespace plugrad::test {
namespace {
constexpr double kLow = -2, kHigh = 2;
using Rows = std::vector<GradientRow>;
using I = const Inputs&;
using Mode = Resampling;

Rows maximum_rows() {
  return {
      {"max_pool2d", "Ceiling", {{1, 3, 4}}, kLow, kHigh,
       [](I x) { return exp(max_pool2d(x[0], {2}, {}, {1, 0}, {1}, true)); }, {}, true},
      {"max_pool3d", "Plain", {{1, 2, 3, 3}}, kLow, kHigh, [](I x) { return exp(max_pool3d(x[0], {2}, {1})); }, {}, true},
      {"max_pool1d_with_indices", "Values", {{1, 5}}, kLow, kHigh,
       [](I x) { return exp(max_pool1d_with_indices(x[0], {2}, {2}, {1}).values); }, {}, true},
      {"max_pool2d_with_indices", "Values", {{1, 3, 3}}, kLow, kHigh,
       [](I x) { return exp(max_pool2d_with_indices(x[0], {2}, {1}).values); }, {}, true},
      {"max_pool3d_with_indices", "Values", {{1, 2, 2, 3}}, kLow, kHigh,
       [](I x) { return exp(max_pool3d_with_indices(x[0], {2}, {1}).values); }, {}, true},
      {"max_unpool1d", "Plain", {{2, 2}}, kLow, kHigh,
       [](I x) { return exp(max_unpool1d(x[0], i64({0, 3, 1, 2}, {2, 2}), {2})); }},
      {"max_unpool2d", "Size", {{1, 1, 2}}, kLow, kHigh,
       [](I x) { return exp(max_unpool2d(x[0], i64({4, 1}, {1, 1, 2}), {2}, {}, {0}, {2, 3})); }},
      {"max_unpool3d", "Plain", {{1, 1, 1, 2}}, kLow, kHigh,
       [](I x) { return exp(max_unpool3d(x[0], i64({9, 3}, {1, 1, 1, 2}), {2})); }},
      {"adaptive_max_pool1d", "Plain", {{2, 5}}, kLow, kHigh,
       [](I x) { return exp(adaptive_max_pool1d(x[0], {3})); }, {}, true},
      {"adaptive_max_pool2d", "Plain", {{1, 4, 3}}, kLow, kHigh,
       [](I x) { return exp(adaptive_max_pool2d(x[0], {2})); }, {}, true},
      {"adaptive_max_pool3d", "Plain", {{1, 2, 3, 2}}, kLow, kHigh,
       [](I x) { return exp(adaptive_max_pool3d(x[0], {1, 2, 2})); }, {}, true},
      {"adaptive_max_pool1d_with_indices", "Values", {{1, 5}}, kLow, kHigh,
       [](I x) { return exp(adaptive_max_pool1d_with_indices(x[0], {2}).values); }, {}, true},
      {"adaptive_max_pool2d_with_indices", "Values", {{1, 3, 3}}, kLow, kHigh,
       [](I x) { return exp(adaptive_max_pool2d_with_indices(x[0], {2}).values); }, {}, true},
      {"adaptive_max_pool3d_with_indices", "Values", {{1, 2, 2, 3}}, kLow, kHigh,
       [](I x) { return exp(adaptive_max_pool3d_with_indices(x[0], {2}).values); }, {}, true},
  };
}

Rows mean_rows() {
  return {
      {"avg_pool1d", "Ceiling", {{2, 5}}, kLow, kHigh, [](I x) { return exp(avg_pool1d(x[0], {2}, {}, {1}, true)); }},
      {"avg_pool2d", "Divisor", {{1, 3, 4}}, kLow, kHigh,
       [](I x) { return exp(avg_pool2d(x[0], {2}, {1}, {0}, false, true, 3)); }},
      {"avg_pool3d", "Bare", {{1, 2, 2, 3}}, kLow, kHigh,
       [](I x) { return exp(avg_pool3d(x[0], {2}, {}, {1}, true, false)); }},
      {"lp_pool1d", "Square", {{2, 5}}, 0.5, 2, [](I x) { return lp_pool1d(x[0], 2, {2}, {}, true); }},
      {"lp_pool2d", "Cube", {{1, 3, 3}}, 0.5, 2, [](I x) { return lp_pool2d(x[0], 3, {2}, {1}); }},
      {"lp_pool3d", "Square", {{1, 2, 2, 2}}, 0.5, 2, [](I x) { return lp_pool3d(x[0], 2, {2}); }},
      {"adaptive_avg_pool1d", "Plain", {{2, 5}}, kLow, kHigh, [](I x) { return exp(adaptive_avg_pool1d(x[0], {3})); }},
      {"adaptive_avg_pool3d", "Plain", {{1, 2, 3, 2}}, kLow, kHigh,
       [](I x) { return exp(adaptive_avg_pool3d(x[0], {1, 2, 2})); }},
  };
}

Rows window_rows() {
  return {
      {"conv1d", "Same", {{1, 2, 4}, {3, 2, 2}}, kLow, kHigh,
       [](I x) { return conv1d(x[0], x[1], {}, {1}, ConvolutionPadding::same); }},
      {"conv2d", "Same", {{1, 2, 3, 3}, {1, 2, 2, 3}}, kLow, kHigh,
       [](I x) { return conv2d(x[0], x[1], {}, {1}, ConvolutionPadding::same, {2, 1}); }},
      {"conv3d", "Valid", {{1, 2, 2, 2}, {1, 1, 2, 2, 2}}, kLow, kHigh,
       [](I x) { return conv3d(x[0], x[1], {}, {1}, ConvolutionPadding::valid); }},
      {"conv_transpose1d", "All", {{1, 2, 3}, {2, 1, 2}, {2}}, kLow, kHigh,
       [](I x) { return conv_transpose1d(x[0], x[1], x[2], {2}, {1}, {1}, 2, {2}); }},
      {"conv_transpose3d", "All", {{2, 1, 2, 2}, {2, 1, 2, 1, 2}}, kLow, kHigh,
       [](I x) { return conv_transpose3d(x[0], x[1], {}, {1, 2, 2}, {0, 0, 1}, {0, 1, 0}, 1, {2, 1, 1}); }},
      {"unfold", "Columns", {{1, 2, 3, 4}}, kLow, kHigh,
       [](I x) { return exp(unfold(x[0], {2, 3}, {1}, {1, 0}, {2, 1})); }},
      {"fold", "Columns", {{1, 4, 6}}, kLow, kHigh, [](I x) { return exp(fold(x[0], {3, 4}, {2}) * 0.25); }},
  };
}

Tensor resized(I x, Mode mode, const Shape& size, bool aligns, bool antialias = false) {
  return exp(interpolate(x[0], size, {}, mode, aligns, {}, antialias));
}

Rows size_rows() {
  return {
      {"interpolate", "Nearest", {{1, 1, 3}}, kLow, kHigh, [](I x) { return exp(interpolate(x[0], {}, {1.5})); }},
      {"interpolate", "Area", {{1, 1, 3, 4}}, kLow, kHigh,
       [](I x) { return exp(interpolate(x[0], {2, 3}, {}, Mode::area)); }},
      {"interpolate", "Linear", {{1, 2, 3}}, kLow, kHigh, [](I x) { return resized(x, Mode::linear, {5}, true); }},
      {"interpolate", "Bilinear", {{1, 1, 3, 2}}, kLow, kHigh,
       [](I x) { return resized(x, Mode::bilinear, {4, 3}, false); }},
      {"interpolate", "Smooth", {{1, 1, 5, 2}}, kLow, kHigh,
       [](I x) { return resized(x, Mode::bilinear, {2, 2}, false, true); }},
      {"interpolate", "Trilinear", {{1, 1, 2, 3, 2}}, kLow, kHigh,
       [](I x) { return resized(x, Mode::trilinear, {3, 2, 2}, false); }},
      {"interpolate", "Bicubic", {{1, 1, 3, 2}}, kLow, kHigh,
       [](I x) { return resized(x, Mode::bicubic, {4, 3}, true); }},
  };
}

Tensor sampled(I x, Mode mode, GridPadding padding, bool aligns) {
  return exp(grid_sample(x[0], x[1] * 0.3 - 0.1, mode, padding, aligns));
}
// Places far outside x, none of them at the edge of an element.
Tensor sampled_beyond(I x, GridPadding padding) {
  return exp(grid_sample(x[0], x[1] * 0.05 + f64({1.4, -1.7, 0.15, 2.6}, {1, 1, 2, 2}), Mode::bilinear, padding));
}

Rows grid_rows() {
  // The derivative of linear interpolation jumps at the centres of elements: the grid stays between the centres.
  const std::vector<Shape> plane = {{1, 2, 3, 3}, {1, 1, 2, 2}}, space = {{1, 1, 2, 2, 2}, {1, 1, 1, 2, 3}};
  return {
      {"grid_sample", "Bilinear", {{1, 2, 2, 2}, {1, 1, 2, 2}}, kLow, kHigh,
       [](I x) { return sampled(x, Mode::bilinear, GridPadding::zeros, true); }},
      {"grid_sample", "Border", plane, kLow, kHigh, [](I x) { return sampled_beyond(x, GridPadding::border); }},
      {"grid_sample", "Reflection", plane, kLow, kHigh, [](I x) { return sampled_beyond(x, GridPadding::reflection); }},
      {"grid_sample", "Zeros", plane, kLow, kHigh, [](I x) { return sampled_beyond(x, GridPadding::zeros); }},
      {"grid_sample", "Bicubic", plane, kLow, kHigh,
       [](I x) { return sampled(x, Mode::bicubic, GridPadding::border, false); }},
      {"grid_sample", "Nearest", {{1, 2, 3, 3}}, kLow, kHigh,
       [](I x) { return exp(grid_sample(x[0], f64({0.1, -0.9, 0.4, 1.2}, {1, 1, 2, 2}), Mode::nearest)); }},
      {"grid_sample", "Space", space, kLow, kHigh,
       [](I x) { return sampled(x, Mode::bilinear, GridPadding::zeros, true); }},
      {"affine_grid", "Plane", {{2, 2, 3}}, kLow, kHigh, [](I x) { return exp(affine_grid(x[0], {2, 1, 2, 3})); }},
      {"affine_grid", "Space", {{1, 3, 4}}, -1, 1, [](I x) { return exp(affine_grid(x[0], {1, 1, 2, 1, 2}, true)); }},
  };
}
}  // namespace

std::vector<GradientRow> spatial_rows() {
  Rows all;
  for (Rows (*family)() : {maximum_rows, mean_rows, window_rows, size_rows, grid_rows})
    for (GradientRow& row : family()) all.push_back(std::move(row));
  return all;
}

}  // namespace plugrad::test
