// Rearrangements of images x (.., c, h, w), whose leading axes are kept. Throws Error (invalid), which names x's shape, if
// extents do not divide.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Groups of upscale_factor^2 channels become blocks of pixels: (.., c / f^2, h f, w f).
PLUGRAD_API Tensor pixel_shuffle(const Tensor& x, int64_t upscale_factor);
// The reverse: blocks of pixels become channels.
PLUGRAD_API Tensor pixel_unshuffle(const Tensor& x, int64_t downscale_factor);
// x (n, c, ..) with its channels, taken as a matrix of `groups` rows, in the order of the transposed matrix.
PLUGRAD_API Tensor channel_shuffle(const Tensor& x, int64_t groups);

}  // namespace plugrad
