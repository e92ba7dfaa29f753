// The arithmetic of gradients. It is recorded like other ops, so that gradients can be differentiated again.
#pragma once
#include <core/tensor/impl.hpp>

namespace plugrad {

// a + b, whose shapes are equal.
Tensor add_gradients(const Tensor& a, const Tensor& b);
// A view of x in a larger shape, by stride 0. The caller knows that x broadcasts to it.
Tensor expand_to(const Tensor& x, const Shape& shape);
// x summed over the axes along which shape is smaller: the reverse of expand_to.
Tensor sum_to(const Tensor& x, const Shape& shape);
// A tensor of like's shape and dtype with this value in every element; unrecorded.
Tensor filled_like(DeviceState& device, const plugrad_view& like, int value);
inline Tensor filled_like(const Tensor& like, int value) { return filled_like(device_of(like), view_of(like), value); }
// x in another dtype; x itself if it has that dtype.
Tensor converted(const Tensor& x, uint8_t dtype);
// Returns grad itself if it is dense and nobody else holds it, else a dense copy.
Tensor own(Tensor& grad);

}  // namespace plugrad
