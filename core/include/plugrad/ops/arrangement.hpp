// Functions that rearrange elements. Gradients flow through them. Negative axes count from the end.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>
#include <vector>

namespace plugrad {

// Adds elements of this value around x: pads[0] before and pads[1] after the last axis, pads[2] and pads[3] for the axis
// before it, and so on. A negative pad removes elements. Returns a copy. Throws Error (invalid) for an odd number of pads,
// for more pads than two per axis, and if more elements are removed than the axis has.
PLUGRAD_API Tensor pad(const Tensor& x, const std::vector<int64_t>& pads, Number value = 0);
enum class PadMode { constant, reflect, replicate, circular };
// The same with elements of x. reflect: mirrored at the end elements, without repeating them; replicate: copies of the end
// elements; circular: the elements of the opposite end. Throws Error (invalid) for an axis with too few elements for the
// mode. value is for PadMode::constant.
PLUGRAD_API Tensor pad(const Tensor& x, const std::vector<int64_t>& pads, PadMode mode, Number value = 0);
// Views of split_size elements along an axis each; the last view may have fewer.
PLUGRAD_API std::vector<Tensor> split(const Tensor& x, int64_t split_size, int axis = 0);
// Views of the given numbers of elements, whose sum must be the axis's extent.
PLUGRAD_API std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& split_size, int axis = 0);
// At most `chunks` views of equal extent along an axis; the last view may have fewer elements.
PLUGRAD_API std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int axis = 0);
// `sections` views along an axis. If `sections` does not divide the extent, the first views have 1 element more.
PLUGRAD_API std::vector<Tensor> tensor_split(const Tensor& x, int64_t sections, int axis = 0);
// Views that begin and end at these positions. Positions have the meaning of positions in a Python slice.
PLUGRAD_API std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<int64_t>& indices, int axis = 0);
// The same along the second axis, or along the only axis. Throws Error (invalid) if the number of sections does not divide
// the extent.
PLUGRAD_API std::vector<Tensor> hsplit(const Tensor& x, int64_t sections);
PLUGRAD_API std::vector<Tensor> hsplit(const Tensor& x, const std::vector<int64_t>& indices);
// The same along the first axis of a tensor of rank 2 or more.
PLUGRAD_API std::vector<Tensor> vsplit(const Tensor& x, int64_t sections);
PLUGRAD_API std::vector<Tensor> vsplit(const Tensor& x, const std::vector<int64_t>& indices);
// The same along the third axis of a tensor of rank 3 or more.
PLUGRAD_API std::vector<Tensor> dsplit(const Tensor& x, int64_t sections);
PLUGRAD_API std::vector<Tensor> dsplit(const Tensor& x, const std::vector<int64_t>& indices);
// A view with the order of elements reversed along the given axes.
PLUGRAD_API Tensor flip(const Tensor& x, const Shape& axes);
// A view with the second axis reversed.
PLUGRAD_API Tensor fliplr(const Tensor& x);
// A view with the first axis reversed.
PLUGRAD_API Tensor flipud(const Tensor& x);
// A view turned k times by 90 degrees in the plane of two axes, from the first towards the second.
PLUGRAD_API Tensor rot90(const Tensor& x, int64_t k = 1, const Shape& axes = {0, 1});
// Moves elements along each of the axes by the shift given for it; elements that leave at an end enter at the opposite end.
// Without axes, moves by a single shift along the flattened tensor.
PLUGRAD_API Tensor roll(const Tensor& x, const Shape& shifts, const Shape& axes = {});
// Repeats x as a whole along each axis, `repeats` times; further axes are added in front. Returns a copy. Throws Error
// (invalid) for fewer repeats than axes.
PLUGRAD_API Tensor repeat(const Tensor& x, const Shape& repeats);
// The same, but x keeps its first axes if there are fewer repeats than axes.
PLUGRAD_API Tensor tile(const Tensor& x, const Shape& repeats);
// Repeats each element `repeats` times along an axis, or of the flattened tensor without an axis. Returns a copy.
PLUGRAD_API Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> axis = std::nullopt);
// Repeats each element by its own number in repeats (integers: a number for each element of the axis, or a single number for
// all). Waits for the device.
PLUGRAD_API Tensor repeat_interleave(const Tensor& x, const Tensor& repeats, std::optional<int64_t> axis = std::nullopt);
// A view with the axes `source` at the places `destination`; the remaining axes keep their order.
PLUGRAD_API Tensor movedim(const Tensor& x, const Shape& source, const Shape& destination);
// A view of overlapping windows: element i of the axis is the window from i * step on, and an added last axis holds the
// window's `size` elements. Throws Error (invalid) if the axis has fewer than size elements.
PLUGRAD_API Tensor unfold(const Tensor& x, int axis, int64_t size, int64_t step);

}  // namespace plugrad
