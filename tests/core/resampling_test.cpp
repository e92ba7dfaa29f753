// Arguments that resampling and windows refuse. tests/torch/spatial_rows.cpp and spatial_rows.cpp test values and gradients.
#include <tests/core/expect.hpp>

namespace plugrad::test {
namespace {

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
