// Rearrangements of images x (.., c, h, w). The leading axes are kept. Throws Error (invalid) with x's shape if extents do
// not divide or windows do not fit.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Moves groups of upscale_factor^2 channels into blocks of pixels: (.., c / f^2, h f, w f) with f = upscale_factor.
PLUGRAD_API Tensor pixel_shuffle(const Tensor& x, int64_t upscale_factor);
// Moves blocks of pixels into channels: the reverse of pixel_shuffle.
PLUGRAD_API Tensor pixel_unshuffle(const Tensor& x, int64_t downscale_factor);
// Returns x (n, c, ..) with its channels, taken as a matrix of `groups` rows, in the order of the transposed matrix.
PLUGRAD_API Tensor channel_shuffle(const Tensor& x, int64_t groups);

// Returns the windows of images x (n, c, h, w), or (c, h, w), as the columns of matrices (n, c kh kw, positions). For
// dilation, padding and stride, each a number or two, see conv2d. Padding is zeros. Tensor.unfold in Python is the function
// of the same name for windows along a single axis.
PLUGRAD_API Tensor unfold(const Tensor& x, const Shape& kernel_size, const Shape& dilation = {1}, const Shape& padding = {0},
                          const Shape& stride = {1});
// Adds the windows x (n, c kh kw, positions), or without n, to images of output_size (h, w): the reverse of unfold. Throws
// Error (invalid) for bools.
PLUGRAD_API Tensor fold(const Tensor& x, const Shape& output_size, const Shape& kernel_size, const Shape& dilation = {1},
                        const Shape& padding = {0}, const Shape& stride = {1});

}  // namespace plugrad
