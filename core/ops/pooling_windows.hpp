// The windows that pooling takes from x, as maxima and means share them.
#pragma once
#include <core/ops/spatial.hpp>

#include <vector>

namespace plugrad {

// Windows of one size at equal distances. Everything has one number for each spatial axis.
struct Pooled {
  const char* name;
  Shape extents;  // of x
  Shape size, stride, padding, dilation;
  Shape counts;  // of windows
  Shape beyond;  // what is padded behind x

  int axes() const { return size.rank(); }
  bool pads() const;
};

// Checks the arguments. An empty stride means size.
struct PoolArguments {
  const Shape &size, &stride, &padding, &dilation;
  bool ceil_mode;
};
Pooled pool_of(const char* name, const Tensor& x, int axes, const PoolArguments& arguments);

// How adaptive pooling cuts an axis.
struct Cuts {
  int64_t extent, count;

  int64_t begin(int64_t i) const { return i * extent / count; }
  int64_t end(int64_t i) const { return ((i + 1) * extent + count - 1) / count; }
  int64_t longest() const;
  bool equal() const { return count && extent % count == 0; }
};
// Checks the arguments, and returns the extents of the result's spatial axes.
Shape adaptive_size(const char* name, const Tensor& x, int axes, const Shape& output_size);
// An axis of x as two axes: windows, and their elements, those beyond the end of a window being `value`.
Tensor cut(const Tensor& x, int axis, const Cuts& cuts, Number value);

// Pads x, or another tensor of its spatial extents, at the last axes.
Tensor padded_for(const Tensor& x, const Pooled& pool, Number value);
// The windows of a padded tensor, whose elements are the last axes.
Tensor windows_for(const Tensor& padded, const Pooled& pool);
// The last `axes` axes, counted from the end.
Shape last_axes(int axes);
// The extents of the last axes.
Shape spatial_extents(const Tensor& x, int axes);

}  // namespace plugrad
