// Images of other sizes, and images sampled at given places: x (n, c, l), (n, c, h, w) or (n, c, d, h, w), whose elements
// are squares of side 1. align_corners: the centres of the first and the last element keep their places; else the outer
// edges do. Elements of f16 and bf16 are computed in f32. Throws Error (invalid), which names the shapes, if they do not
// fit.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>
#include <vector>

namespace plugrad {

// How an element between others is made of them. nearest rounds positions down; nearest_exact takes the nearest centre.
enum class Resampling { nearest, nearest_exact, linear, bilinear, trilinear, bicubic, area };
// x with `size` elements along its spatial axes, or scale_factor as many, rounded down: one number for all axes, or one for
// each, and just one of the two. linear is for one spatial axis, bilinear and bicubic for two, trilinear for three; area is
// the mean that adaptive_avg_pool takes. recompute_scale_factor: positions are scaled by the quotient of the extents, and
// not by scale_factor. antialias: bilinear and bicubic take all elements that shrink into one. Gradients flow to x. Floating
// dtypes; nearest and nearest_exact take all. Throws Error (invalid) for align_corners with modes other than those of lines
// and cubes, and for extents of 0.
PLUGRAD_API Tensor interpolate(const Tensor& x, const Shape& size = {}, const std::vector<double>& scale_factor = {},
                               Resampling mode = Resampling::nearest, std::optional<bool> align_corners = std::nullopt,
                               std::optional<bool> recompute_scale_factor = std::nullopt, bool antialias = false);

// What lies beyond x: zeros, the elements at its border, or x mirrored there.
enum class GridPadding { zeros, border, reflection };
// x (n, c, h, w) at the places grid (n, h', w', 2): (n, c, h', w'). A place is (x, y) with -1 at the left and the upper end
// of x and 1 at the other ends. With three axes grid is (n, d', h', w', 3) and a place (x, y, z). mode: bilinear, also for
// three axes; nearest, of which halves go to the even number and which has no gradient to the grid; or bicubic. The gradient
// to a coordinate that padding moved to the border is 0. NaN counts as a place beyond x. Both have one floating dtype.
PLUGRAD_API Tensor grid_sample(const Tensor& x, const Tensor& grid, Resampling mode = Resampling::bilinear,
                               GridPadding padding_mode = GridPadding::zeros,
                               std::optional<bool> align_corners = std::nullopt);
// The places, for grid_sample, that theta (n, 2, 3) maps those of an image of `size` (n, c, h, w) to: (n, h, w, 2). With
// theta (n, 3, 4) and size (n, c, d, h, w): (n, d, h, w, 3). Floating dtypes.
PLUGRAD_API Tensor affine_grid(const Tensor& theta, const Shape& size, std::optional<bool> align_corners = std::nullopt);

}  // namespace plugrad
