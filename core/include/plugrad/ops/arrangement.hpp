// Functions that rearrange elements. Gradients flow through them. Negative axes count from the end.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <vector>

namespace plugrad {

// Adds elements of this value around x: pads[0] before and pads[1] after the last axis, pads[2] and pads[3] for the axis
// before it, and so on. A negative pad removes elements. Returns a copy. Throws Error (invalid) for an odd number of pads,
// for more than the axes take, and if more elements are removed than there are.
PLUGRAD_API Tensor pad(const Tensor& x, const std::vector<int64_t>& pads, Number value = 0);
// Views of split_size elements along an axis each; the last one may have fewer.
PLUGRAD_API std::vector<Tensor> split(const Tensor& x, int64_t split_size, int axis = 0);
// Views of the given numbers of elements, whose sum must be the axis's extent.
PLUGRAD_API std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& split_size, int axis = 0);
// At most `chunks` views of equal extent along an axis; the last one may have fewer elements.
PLUGRAD_API std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int axis = 0);
// A view in which the order of elements is reversed along the given axes.
PLUGRAD_API Tensor flip(const Tensor& x, const Shape& axes);
// Moves elements along each of the axes by the shift given for it; what leaves at one end enters at the other. Without axes,
// moves by one shift along the flattened tensor.
PLUGRAD_API Tensor roll(const Tensor& x, const Shape& shifts, const Shape& axes = {});
// Repeats x along each axis as a whole, as often as repeats says; further axes are added in front. Returns a copy. Throws
// Error (invalid) for fewer repeats than axes.
PLUGRAD_API Tensor repeat(const Tensor& x, const Shape& repeats);
// The same, but x keeps its first axes if there are fewer repeats than axes.
PLUGRAD_API Tensor tile(const Tensor& x, const Shape& repeats);
// Repeats each element `repeats` times along an axis. Returns a copy.
PLUGRAD_API Tensor repeat_interleave(const Tensor& x, int64_t repeats, int axis);
// A view with the axes `source` at the places `destination`; the others keep their order.
PLUGRAD_API Tensor movedim(const Tensor& x, const Shape& source, const Shape& destination);
// A view of overlapping windows: element i of the axis is the window that begins at i * step, and a last axis is added that
// holds its `size` elements. Throws Error (invalid) if the axis has fewer than size elements.
PLUGRAD_API Tensor unfold(const Tensor& x, int axis, int64_t size, int64_t step);

}  // namespace plugrad
