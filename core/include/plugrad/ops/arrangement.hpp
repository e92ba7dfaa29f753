// Functions that rearrange elements. Gradients flow through them. Negative axes count from the end.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>
#include <vector>

namespace plugrad {

// Adds elements of this value around x: pads[0] before and pads[1] after the last axis, pads[2] and pads[3] for the axis
// before it, and so on. A negative pad removes elements. Returns a copy. Throws Error (invalid) for an odd number of pads,
// for more than the axes take, and if more elements are removed than there are.
PLUGRAD_API Tensor pad(const Tensor& x, const std::vector<int64_t>& pads, Number value = 0);
enum class PadMode { constant, reflect, replicate, circular };
// The same with elements of x: mirrored at the end elements, which are not repeated; copies of the end elements; or those of
// the other end. Takes as few elements as the mode needs from each axis, else throws Error (invalid). value is that of
// PadMode::constant.
PLUGRAD_API Tensor pad(const Tensor& x, const std::vector<int64_t>& pads, PadMode mode, Number value = 0);
// Views of split_size elements along an axis each; the last one may have fewer.
PLUGRAD_API std::vector<Tensor> split(const Tensor& x, int64_t split_size, int axis = 0);
// Views of the given numbers of elements, whose sum must be the axis's extent.
PLUGRAD_API std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& split_size, int axis = 0);
// At most `chunks` views of equal extent along an axis; the last one may have fewer elements.
PLUGRAD_API std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int axis = 0);
// `sections` views along an axis, of which the first ones have one element more if their number does not divide the extent.
PLUGRAD_API std::vector<Tensor> tensor_split(const Tensor& x, int64_t sections, int axis = 0);
// Views that begin and end at these positions, which mean what they mean in a Python slice.
PLUGRAD_API std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<int64_t>& indices, int axis = 0);
// The same along the second axis, or along the only one. Throws Error (invalid) if the number of sections does not divide
// the extent.
PLUGRAD_API std::vector<Tensor> hsplit(const Tensor& x, int64_t sections);
PLUGRAD_API std::vector<Tensor> hsplit(const Tensor& x, const std::vector<int64_t>& indices);
// The same along the first axis of a tensor of rank 2 or more.
PLUGRAD_API std::vector<Tensor> vsplit(const Tensor& x, int64_t sections);
PLUGRAD_API std::vector<Tensor> vsplit(const Tensor& x, const std::vector<int64_t>& indices);
// The same along the third axis of a tensor of rank 3 or more.
PLUGRAD_API std::vector<Tensor> dsplit(const Tensor& x, int64_t sections);
PLUGRAD_API std::vector<Tensor> dsplit(const Tensor& x, const std::vector<int64_t>& indices);
// A view in which the order of elements is reversed along the given axes.
PLUGRAD_API Tensor flip(const Tensor& x, const Shape& axes);
// A view with the second axis reversed.
PLUGRAD_API Tensor fliplr(const Tensor& x);
// A view with the first axis reversed.
PLUGRAD_API Tensor flipud(const Tensor& x);
// A view turned k times by 90 degrees in the plane of two axes, from the first towards the second.
PLUGRAD_API Tensor rot90(const Tensor& x, int64_t k = 1, const Shape& axes = {0, 1});
// Moves elements along each of the axes by the shift given for it; what leaves at one end enters at the other. Without axes,
// moves by one shift along the flattened tensor.
PLUGRAD_API Tensor roll(const Tensor& x, const Shape& shifts, const Shape& axes = {});
// Repeats x along each axis as a whole, as often as repeats says; further axes are added in front. Returns a copy. Throws
// Error (invalid) for fewer repeats than axes.
PLUGRAD_API Tensor repeat(const Tensor& x, const Shape& repeats);
// The same, but x keeps its first axes if there are fewer repeats than axes.
PLUGRAD_API Tensor tile(const Tensor& x, const Shape& repeats);
// Repeats each element `repeats` times along an axis, or of the flattened tensor without one. Returns a copy.
PLUGRAD_API Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> axis = std::nullopt);
// Repeats each element as often as its own number in repeats (integers, one for each element of the axis, or one for all)
// says. Waits for the device.
PLUGRAD_API Tensor repeat_interleave(const Tensor& x, const Tensor& repeats, std::optional<int64_t> axis = std::nullopt);
// A view with the axes `source` at the places `destination`; the others keep their order.
PLUGRAD_API Tensor movedim(const Tensor& x, const Shape& source, const Shape& destination);
// A view of overlapping windows: element i of the axis is the window that begins at i * step, and a last axis is added that
// holds its `size` elements. Throws Error (invalid) if the axis has fewer than size elements.
PLUGRAD_API Tensor unfold(const Tensor& x, int axis, int64_t size, int64_t step);

}  // namespace plugrad
