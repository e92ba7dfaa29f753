// Functions that rearrange elements. Gradients flow through the functions. Negative axes count from the end.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>
#include <vector>

namespace plugrad {

// Adds elements of this value around x: pads[0] before and pads[1] after the last axis, pads[2] and pads[3] for the axis
// before the last, and so on. A negative pad removes elements. Returns a copy. Throws Error (invalid) for an odd number of
// pads, for more than two pads per axis, and if more elements are removed than the axis has.
PLUGRAD_API Tensor pad(const Tensor& x, const std::vector<int64_t>& pads, Number value = 0);
enum class PadMode { constant, reflect, replicate, circular };
// Pads x with elements of x instead of a value. reflect: mirrors x at the end elements, without repeating them; replicate:
// copies the end elements; circular: takes the elements of the opposite end. Throws Error (invalid) for an axis with too few
// elements for the mode. value is for PadMode::constant.
PLUGRAD_API Tensor pad(const Tensor& x, const std::vector<int64_t>& pads, PadMode mode, Number value = 0);
// Returns views of split_size elements each along an axis; the last view may have fewer elements.
PLUGRAD_API std::vector<Tensor> split(const Tensor& x, int64_t split_size, int axis = 0);
// Returns views of the given numbers of elements along an axis. The numbers must add up to the axis's extent.
PLUGRAD_API std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& split_size, int axis = 0);
// Returns at most `chunks` views of equal extent along an axis; the last view may have fewer elements.
PLUGRAD_API std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int axis = 0);
// Returns `sections` views along an axis. If `sections` does not divide the extent, the first views have 1 element more.
PLUGRAD_API std::vector<Tensor> tensor_split(const Tensor& x, int64_t sections, int axis = 0);
// Returns the views between these positions. Positions have the meaning of positions in a Python slice.
PLUGRAD_API std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<int64_t>& indices, int axis = 0);
// Splits as tensor_split does, along the second axis, or along the first axis if x has rank 1. Throws Error (invalid) if the
// number of sections does not divide the extent.
PLUGRAD_API std::vector<Tensor> hsplit(const Tensor& x, int64_t sections);
PLUGRAD_API std::vector<Tensor> hsplit(const Tensor& x, const std::vector<int64_t>& indices);
// Splits as hsplit does, along the first axis of a tensor of rank 2 or more.
PLUGRAD_API std::vector<Tensor> vsplit(const Tensor& x, int64_t sections);
PLUGRAD_API std::vector<Tensor> vsplit(const Tensor& x, const std::vector<int64_t>& indices);
// Splits as hsplit does, along the third axis of a tensor of rank 3 or more.
PLUGRAD_API std::vector<Tensor> dsplit(const Tensor& x, int64_t sections);
PLUGRAD_API std::vector<Tensor> dsplit(const Tensor& x, const std::vector<int64_t>& indices);
// Returns a view with the order of elements reversed along the given axes.
PLUGRAD_API Tensor flip(const Tensor& x, const Shape& axes);
// Returns a view with the second axis reversed.
PLUGRAD_API Tensor fliplr(const Tensor& x);
// Returns a view with the first axis reversed.
PLUGRAD_API Tensor flipud(const Tensor& x);
// Returns a view of x turned k times by 90 degrees in the plane of two axes, from the first axis towards the second.
PLUGRAD_API Tensor rot90(const Tensor& x, int64_t k = 1, const Shape& axes = {0, 1});
// Moves elements along each axis by the shift given for the axis; elements that leave at an end enter at the opposite end.
// Without axes, moves by a single shift along the flattened tensor.
PLUGRAD_API Tensor roll(const Tensor& x, const Shape& shifts, const Shape& axes = {});
// Repeats x as a whole along each axis, `repeats` times. Repeats beyond the rank of x add axes in front. Returns a copy.
// Throws Error (invalid) for fewer repeats than axes.
PLUGRAD_API Tensor repeat(const Tensor& x, const Shape& repeats);
// Repeats x as `repeat` does, but x keeps its first axes if there are fewer repeats than axes.
PLUGRAD_API Tensor tile(const Tensor& x, const Shape& repeats);
// Repeats each element `repeats` times along an axis or, without an axis, along the flattened tensor. Returns a copy.
PLUGRAD_API Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> axis = std::nullopt);
// Repeats each element by its own number in repeats, a tensor of integers with one number for each element of the axis or a
// single number for all elements. Waits for the device.
PLUGRAD_API Tensor repeat_interleave(const Tensor& x, const Tensor& repeats, std::optional<int64_t> axis = std::nullopt);
// Returns a view with the axes `source` at the positions `destination`; the remaining axes keep their order.
PLUGRAD_API Tensor movedim(const Tensor& x, const Shape& source, const Shape& destination);
// Returns a view of overlapping windows: element i of the axis is the window that begins at i * step, and an added last axis
// holds the window's `size` elements. Throws Error (invalid) if the axis has fewer than size elements.
PLUGRAD_API Tensor unfold(const Tensor& x, int axis, int64_t size, int64_t step);

}  // namespace plugrad
