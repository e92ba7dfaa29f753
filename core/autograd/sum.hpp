// The arithmetic of gradients. It is recorded like all ops, so that gradients can be differentiated again.
#pragma once
#include <core/tensor/impl.hpp>

namespace plugrad {

// Returns a + b. Their shapes must be equal.
Tensor add_gradients(const Tensor& a, const Tensor& b);
// Returns a view of x in a larger shape, by stride 0. The caller ensures that x broadcasts to the shape.
Tensor expand_to(const Tensor& x, const Shape& shape);
// Returns x summed over the smaller axes of `shape`: the reverse of expand_to.
Tensor sum_to(const Tensor& x, const Shape& shape);
// Returns a tensor of like's shape and dtype with this value in every element; unrecorded.
Tensor filled_like(DeviceState& device, const plugrad_view& like, int value);
inline Tensor filled_like(const Tensor& like, int value) { return filled_like(device_of(like), view_of(like), value); }
// Returns the conjugate of a complex tensor.
Tensor conjugated(const Tensor& x);
// A view of the real (0) or the imaginary part (1) of a complex tensor, outside the graph.
Tensor part_of(const Tensor& x, int index);
// Returns x in another dtype, or x itself if it has the dtype already.
Tensor converted(const Tensor& x, uint8_t dtype);
// Returns grad itself if it is dense and has no further owner, else a dense copy.
Tensor own(Tensor& grad);

}  // namespace plugrad
