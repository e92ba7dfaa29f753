// Pooling, convolution, windows as columns and resampling.
#include <tests/torch/rows.hpp>

namespace plugrad::test {
namespace {
using Rows = std::vector<TorchRow>;
using Mode = Resampling;
using Pad = ConvolutionPadding;
using Sizes = Shape;

Outputs both(const ValuesIndices& found) { return std::vector<Tensor>{found.values, found.indices}; }

Rows maximum_rows() {
  return {
      {"max_pool1d ceil", [](I x) { return both(max_pool1d_with_indices(x[0], {2}, {2}, {0}, {1}, true)); }},
      {"max_pool1d padded ceil", [](I x) { return both(max_pool1d_with_indices(x[0], {3}, {3}, {1}, {1}, true)); }},
      {"max_pool2d ties", [](I x) { return both(max_pool2d_with_indices(x[0], {2}, {1})); }},
      {"max_pool2d dilated", [](I x) { return both(max_pool2d_with_indices(x[0], {2, 3}, {2}, {1}, {3, 1})); }},
      {"max_pool2d ceil", [](I x) { return both(max_pool2d_with_indices(x[0], {3}, {2}, {1}, {1}, true)); }},
      {"max_pool3d", [](I x) { return both(max_pool3d_with_indices(x[0], {2}, {1}, {0, 1, 1})); }},
      {"max_pool3d ceil", [](I x) { return both(max_pool3d_with_indices(x[0], {2, 3, 2}, {2}, {0}, {1}, true)); }},
      {"adaptive_max_pool1d", [](I x) { return both(adaptive_max_pool1d_with_indices(x[0], {3})); }},
      {"adaptive_max_pool2d", [](I x) { return both(adaptive_max_pool2d_with_indices(x[0], {2, 4})); }},
      {"adaptive_max_pool2d ties", [](I x) { return both(adaptive_max_pool2d_with_indices(x[0], {2, 3})); }},
      {"adaptive_max_pool3d", [](I x) { return both(adaptive_max_pool3d_with_indices(x[0], {2, 3, 4})); }},
      {"max_unpool1d", [](I x) { return max_unpool1d(x[0], x[1], {2}); }},
      {"max_unpool1d size", [](I x) { return max_unpool1d(x[0], x[1], {2}, {}, {0}, {7}); }},
      {"max_unpool2d", [](I x) { return max_unpool2d(x[0], x[1], {2}, {2}, {0}); }},
      {"max_unpool2d repeated", [](I x) { return max_unpool2d(x[0], x[1], {3}, {1}, {0}); }},
      {"max_unpool3d", [](I x) { return max_unpool3d(x[0], x[1], {1, 2, 2}); }},
  };
}

Rows mean_rows() {
  return {
      {"avg_pool1d ceil", [](I x) { return avg_pool1d(x[0], {3}, {2}, {1}, true); }},
      {"avg_pool1d bare", [](I x) { return avg_pool1d(x[0], {2}, {2}, {1}, true, false); }},
      {"avg_pool2d ceil", [](I x) { return avg_pool2d(x[0], {2, 3}, {2, 3}, {1, 0}, true); }},
      {"avg_pool2d bare ceil", [](I x) { return avg_pool2d(x[0], {3}, {2}, {1}, true, false); }},
      {"avg_pool2d divisor", [](I x) { return avg_pool2d(x[0], {2}, {2}, {1}, true, true, 3); }},
      {"avg_pool3d", [](I x) { return avg_pool3d(x[0], {2}, {1}, {1}); }},
      {"avg_pool3d bare ceil", [](I x) { return avg_pool3d(x[0], {2}, {2}, {1}, true, false); }},
      {"lp_pool1d", [](I x) { return lp_pool1d(x[0], 3, {2}, {}, true); }},
      {"lp_pool2d", [](I x) { return lp_pool2d(x[0], 2, {2}); }},
      {"lp_pool2d zeros", [](I x) { return lp_pool2d(x[0], 2, {2}); }},
      {"lp_pool3d", [](I x) { return lp_pool3d(x[0], 1.5, {2}, {1}); }},
      {"adaptive_avg_pool1d", [](I x) { return adaptive_avg_pool1d(x[0], {3}); }},
      {"adaptive_avg_pool2d", [](I x) { return adaptive_avg_pool2d(x[0], {3, 8}); }},
      {"adaptive_avg_pool3d", [](I x) { return adaptive_avg_pool3d(x[0], {2, 3, 5}); }},
  };
}

Rows window_rows() {
  return {
      {"conv1d same", [](I x) { return conv1d(x[0], x[1], x[2], {1}, Pad::same); }},
      {"conv2d same", [](I x) { return conv2d(x[0], x[1], {}, {1}, Pad::same, {1, 2}, 2); }},
      {"conv2d valid", [](I x) { return conv2d(x[0], x[1], {}, {2}, Pad::valid); }},
      {"conv3d same", [](I x) { return conv3d(x[0], x[1], {}, {1}, Pad::same); }},
      {"conv_transpose1d", [](I x) { return conv_transpose1d(x[0], x[1], x[2], {3}, {1}, {2}, 2, {2}); }},
      {"conv_transpose1d bare", [](I x) { return conv_transpose1d(x[0], x[1]); }},
      {"conv_transpose3d",
       [](I x) { return conv_transpose3d(x[0], x[1], x[2], {1, 2, 2}, {0, 1, 0}, {0, 1, 0}, 1, {2, 1, 1}); }},
      {"unfold", [](I x) { return unfold(x[0], {2, 3}, {1}, {1, 0}, {2, 1}); }},
      {"unfold dilated", [](I x) { return unfold(x[0], {2}, {2}); }},
      {"fold", [](I x) { return fold(x[0], {4, 5}, {2, 3}, {1}, {1, 0}, {2, 1}); }},
      {"fold dilated", [](I x) { return fold(x[0], {4, 5}, {2}, {2}); }},
  };
}

// A mode's rows for one size, with and without aligned corners, and for one factor.
void add_resized(Rows& rows, const std::string& name, Mode mode, const Sizes& size) {
  for (const bool aligns : {false, true})
    rows.push_back({"interpolate " + name + (aligns ? " True" : " False"),
                    [=](I x) { return interpolate(x[0], size, {}, mode, aligns); }});
  rows.push_back({"interpolate " + name + " scaled", [=](I x) { return interpolate(x[0], {}, {1.3}, mode); }});
  rows.push_back({"interpolate " + name + " recomputed",
                  [=](I x) { return interpolate(x[0], {}, {1.3}, mode, {}, true); }});
}

Rows size_rows() {
  Rows rows;
  for (const auto& [name, mode] : {std::pair("nearest", Mode::nearest), std::pair("nearest-exact", Mode::nearest_exact),
                                   std::pair("area", Mode::area)}) {
    const std::string text = std::string("interpolate ") + name;
    rows.push_back({text + " 1", [mode](I x) { return interpolate(x[0], {5}, {}, mode); }});
    rows.push_back({text + " 2", [mode](I x) { return interpolate(x[0], {}, {1.7, 0.6}, mode); }});
    rows.push_back({text + " 3", [mode](I x) { return interpolate(x[0], {4, 3, 5}, {}, mode); }});
  }
  add_resized(rows, "linear", Mode::linear, {10});
  add_resized(rows, "bilinear", Mode::bilinear, {7, 4});
  add_resized(rows, "trilinear", Mode::trilinear, {2, 7, 5});
  add_resized(rows, "bicubic", Mode::bicubic, {7, 4});
  for (const Sizes& size : {Sizes{2, 3}, Sizes{9, 6}})
    for (const auto& [name, mode] : {std::pair("bilinear", Mode::bilinear), std::pair("bicubic", Mode::bicubic)})
      rows.push_back({std::string("interpolate ") + name + " antialias " + std::to_string(size[0]),
                      [mode, size](I x) { return interpolate(x[0], size, {}, mode, {}, {}, true); }});
  return rows;
}

Rows grid_rows() {
  Rows rows;
  for (const auto& [name, mode] : {std::pair("bilinear", Mode::bilinear), std::pair("nearest", Mode::nearest),
                                   std::pair("bicubic", Mode::bicubic)})
    for (const auto& [beyond, padding] :
         {std::pair("zeros", GridPadding::zeros), std::pair("border", GridPadding::border),
          std::pair("reflection", GridPadding::reflection)})
      for (const bool aligns : {false, true}) {
        const auto apply = [mode, padding, aligns](I x) { return grid_sample(x[0], x[1], mode, padding, aligns); };
        const std::string text = std::string("grid_sample ") + name + " " + beyond + (aligns ? " True" : " False");
        // plugrad adds the terms of cubic interpolation in another order than PyTorch.
        rows.push_back({text, apply, 1e-12, 3e-5});
        if (mode != Mode::bicubic) rows.push_back({text + " 3", apply, 1e-12, 3e-5});
      }
  for (const bool aligns : {false, true}) {
    const std::string last = aligns ? "True" : "False";
    rows.push_back({"affine_grid " + last, [aligns](I x) { return affine_grid(x[0], {2, 1, 3, 1}, aligns); }});
    rows.push_back({"affine_grid 3 " + last, [aligns](I x) { return affine_grid(x[0], {1, 1, 2, 3, 2}, aligns); }});
  }
  return rows;
}
}  // namespace

std::vector<TorchRow> spatial_rows() {
  Rows all = maximum_rows();
  for (const Rows& more : {mean_rows(), window_rows(), size_rows(), grid_rows()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace plugrad::test
