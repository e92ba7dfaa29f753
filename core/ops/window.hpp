// Overlapping windows along an axis, and the reverse. Convolution and pooling use them.
#pragma once
#include <core/ops/extent.hpp>
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Window i holds the elements i * step + j * dilation of the axis, j below size.
struct Windows {
  int axis;
  Extent size, step, dilation = 1;

  int64_t span() const { return (size - 1) * dilation + 1; }
  int64_t count(int64_t extent) const { return extent < span() ? 0 : (extent - span()) / step + 1; }
  // The same windows of an axis of this extent, with unused numbers made small: products stay in range. Requires a window.
  Windows used(int64_t extent) const {
    const Extent room = extent - span() + 1;
    return {axis, size, step < room ? step : room, size > 1 ? dilation : Extent(1)};
  }
};

// Returns a view with one element of the axis per window and a last axis of the windows' elements.
Tensor windows_of(const Tensor& x, const Windows& windows);
// Returns zeros with `extent` elements along the axis and each window added in its place.
Tensor add_windows(const Tensor& x, int64_t extent, const Windows& windows);

}  // namespace plugrad
