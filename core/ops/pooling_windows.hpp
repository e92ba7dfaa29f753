// The windows of pooling, shared by maxima and means.
#pragma once
#include <core/ops/spatial.hpp>

#include <vector>

namespace plugrad {

// Windows of equal size at equal distances. Each shape has a number for each spatial axis.
struct Pooled {
  const char* name;
  Shape extents;  // of x
  Shape size, stride, padding, dilation;
  Shape counts;  // of windows
  Shape beyond;  // padding behind x

  int axes() const { return size.rank(); }
  bool pads() const;
};

// Checks the arguments. An empty stride means size.
struct PoolArguments {
  const Shape &size, &stride, &padding, &dilation;
  bool ceil_mode;
};
Pooled pool_of(const char* name, const Tensor& x, int axes, const PoolArguments& arguments);

// The windows of adaptive pooling along an axis.
struct Cuts {
  int64_t extent, count;

  int64_t begin(int64_t i) const { return i * extent / count; }
  int64_t end(int64_t i) const { return ((i + 1) * extent + count - 1) / count; }
  int64_t longest() const;
  bool equal() const { return count && extent % count == 0; }
};
// Checks the arguments, and returns the extents of the result's spatial axes.
Shape adaptive_size(const char* name, const Tensor& x, int axes, const Shape& output_size);
// An axis of x as two axes: windows, and their elements. Elements beyond the end of a window are `value`.
Tensor cut(const Tensor& x, int axis, const Cuts& cuts, Number value);

// Pads x, or any tensor of its spatial extents, at the last axes.
Tensor padded_for(const Tensor& x, const Pooled& pool, Number value);
// The windows of a padded tensor; the last axes are a window's elements.
Tensor windows_for(const Tensor& padded, const Pooled& pool);
// The last `axes` axes, counted from the end.
Shape last_axes(int axes);
// The extents of the last axes.
Shape spatial_extents(const Tensor& x, int axes);

}  // namespace plugrad
