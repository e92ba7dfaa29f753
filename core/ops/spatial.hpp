// Arguments and constants of functions of spatial axes, the last axes: a number for each axis.
#pragma once
#include <core/ops/argument.hpp>
#include <core/ops/window.hpp>
#include <core/runtime/observe/observer.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/views.hpp>

#include <vector>

namespace plugrad {

// The numbers for the axes; a single number is repeated for all axes. Refuses numbers below `least`.
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

// Throws Error (invalid) if count * each numbers are too many to compute in turn within a second.
inline void require_table(const char* name, int64_t each, int64_t count) {
  constexpr int64_t kMost = 1 << 26;
  if (Extent(each) * count > kMost)
    refuse(name, "an axis would take " + std::to_string(count) + " times " + std::to_string(each) +
                     " elements: expected at most " + std::to_string(kMost));
}

// Numbers on x's device, in f64 if x is f64, else in f32.
inline Tensor constant(const std::vector<double>& numbers, const Shape& shape, const Tensor& x) {
  const observe::ConstantUploads constant;
  if (x.dtype() == DType::f64) return Tensor::from(numbers, shape, x.device());
  return Tensor::from(std::vector<float>(numbers.begin(), numbers.end()), shape, x.device());
}

// The elements of an axis at these positions, in their order.
inline Tensor chosen(const Tensor& x, int axis, const std::vector<int64_t>& positions) {
  const size_t at = static_cast<size_t>(normal_axis(axis, x.rank(), "index"));
  Shape along(std::vector<int64_t>(static_cast<size_t>(x.rank()), 1)), shape = x.shape();
  along[at] = shape[at] = static_cast<int64_t>(positions.size());
  const observe::ConstantUploads constant;
  return gather(x, axis, expand(Tensor::from(positions, along, x.device()), shape));
}

// padded: the shape of a tensor with padding.
inline void require_window(const char* name, const Shape& padded, const Windows& windows) {
  const int64_t extent = padded[static_cast<size_t>(windows.axis)];
  if (windows.span() > extent)
    refuse(name, "a window spans " + std::to_string(windows.span()) + " elements, but the padded x has shape " +
                     padded.text() + ": give smaller windows or more padding");
}

}  // namespace plugrad
