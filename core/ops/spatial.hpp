// Arguments of convolution and pooling: one number per spatial axis, which are the last axes.
#pragma once
#include <core/ops/window.hpp>
#include <plugrad/ops/arrangement.hpp>

#include <core/ops/argument.hpp>

#include <vector>

namespace plugrad {

// The numbers, one for each axis; one number serves all axes. None may be below `least`.
inline Shape per_axis(const char* name, const char* role, const Shape& numbers, int axes, int64_t least) {
  Shape all = numbers;
  while (numbers.rank() == 1 && all.rank() < axes) all.push_back(numbers[0]);
  bool fits = all.rank() == axes;
  for (const int64_t each : all) fits = fits && each >= least;
  if (!fits)
    refuse(name, std::string(role) + " is " + numbers.text() + ": expected 1 or " + std::to_string(axes) +
                     " numbers, each " + std::to_string(least) + " or more");
  return all;
}

// x padded on both sides of its last axes.
inline Tensor padded_axes(const Tensor& x, const Shape& padding, Number value) {
  std::vector<int64_t> pads;
  bool any = false;
  for (size_t i = padding.size(); i-- > 0;) {
    pads.insert(pads.end(), 2, padding[i]);
    any = any || padding[i];
  }
  return any ? pad(x, pads, value) : x;
}

inline void require_window(const char* name, const Tensor& padded, const Windows& windows) {
  const int64_t extent = padded.size(windows.axis);
  if (windows.span() > extent)
    refuse(name, "a window spans " + std::to_string(windows.span()) + " elements, but the padded x has shape " +
                     padded.shape().text() + ": give smaller windows or more padding");
}

}  // namespace plugrad
