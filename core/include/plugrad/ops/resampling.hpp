// Resized images, and images sampled at given positions: x (n, c, l), (n, c, h, w) or (n, c, d, h, w), whose elements are
// squares of side 1. align_corners keeps the positions of the centres of the first and the last element; without
// align_corners the positions of the outer edges are kept. Elements of f16 and bf16 are computed in f32. Throws Error
// (invalid) with the shapes if they do not fit.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>
#include <vector>

namespace plugrad {

// The computation of an element between elements of x. nearest rounds positions down; nearest_exact takes the nearest
// centre.
enum class Resampling { nearest, nearest_exact, linear, bilinear, trilinear, bicubic, area };
// Returns x with `size` elements along its spatial axes, or scale_factor as many, rounded down: a number for all axes, or a
// number for each axis; give either size or scale_factor. linear is for 1 spatial axis, bilinear and bicubic for 2,
// trilinear for 3; area is the mean of adaptive_avg_pool. recompute_scale_factor: positions are scaled by the quotient of
// the extents, and not by scale_factor. antialias: bilinear and bicubic use all elements that shrink into an element of the
// result. Gradients flow to x. Floating dtypes; nearest and nearest_exact take all dtypes. Throws Error (invalid) for
// align_corners with nearest, nearest_exact and area, and for extents of 0.
PLUGRAD_API Tensor interpolate(const Tensor& x, const Shape& size = {}, const std::vector<double>& scale_factor = {},
                               Resampling mode = Resampling::nearest, std::optional<bool> align_corners = std::nullopt,
                               std::optional<bool> recompute_scale_factor = std::nullopt, bool antialias = false);

// The elements beyond x: zeros, the elements at its border, or x mirrored at its border.
enum class GridPadding { zeros, border, reflection };
// Returns x (n, c, h, w) at the places grid (n, h', w', 2): (n, c, h', w'). A place is (x, y) with -1 at the left and the
// upper end of x and 1 at the opposite ends. With three spatial axes grid is (n, d', h', w', 3) and a place is (x, y, z).
// mode: bilinear, also for three axes; nearest, with halves rounded to even and without a gradient to the grid; or bicubic.
// If padding moved a coordinate to the border, the gradient to the coordinate is 0. NaN counts as a place beyond x. x and
// grid have the same floating dtype.
PLUGRAD_API Tensor grid_sample(const Tensor& x, const Tensor& grid, Resampling mode = Resampling::bilinear,
                               GridPadding padding_mode = GridPadding::zeros,
                               std::optional<bool> align_corners = std::nullopt);
// Returns the places of an image of `size` (n, c, h, w), mapped by theta (n, 2, 3), for grid_sample: (n, h, w, 2). With
// theta (n, 3, 4) and size (n, c, d, h, w) the result is (n, d, h, w, 3). Floating dtypes.
PLUGRAD_API Tensor affine_grid(const Tensor& theta, const Shape& size, std::optional<bool> align_corners = std::nullopt);

}  // namespace plugrad
