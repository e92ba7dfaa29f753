// Complex numbers: tensors of c64 and c128, whose elements are two real numbers in memory, the real part first.
//
// Ops on complex tensors run on every device: by a kernel for complex numbers if the device has one, else by ops on the
// parts. Functions without a meaning for complex numbers, such as comparisons by size, throw Error (unsupported).
//
// Gradients are as in PyTorch: the gradient of a real loss L by x + i y is dL/dx + i dL/dy, so a step against the gradient
// descends. The gradient of a function f with a complex derivative is the incoming gradient times the conjugate of f'.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Returns a view of the real part; a real tensor itself.
PLUGRAD_API Tensor real(const Tensor& x);
// Returns a view of the imaginary part. Throws Error (invalid) for a real tensor.
PLUGRAD_API Tensor imag(const Tensor& x);
// Returns x with the opposite imaginary part; a real tensor itself.
PLUGRAD_API Tensor conj(const Tensor& x);
// Returns the conjugate of x with its last two axes swapped.
PLUGRAD_API Tensor adjoint(const Tensor& x);
// Returns real + i imag, of c64 or c128. Both parts are f32 or both f64, and they broadcast. Throws Error (invalid).
PLUGRAD_API Tensor complex(const Tensor& real, const Tensor& imag);
// Returns abs e^(i angle), with the angle in radians. Both are f32 or both f64, and they broadcast. Throws Error (invalid).
PLUGRAD_API Tensor polar(const Tensor& abs, const Tensor& angle);
// Returns a view of the parts, with an axis of extent 2 behind x's axes. Throws Error (invalid) for a real tensor, and for
// rank 8.
PLUGRAD_API Tensor view_as_real(const Tensor& x);
// Returns x's last axis, of extent 2, as complex numbers: a view, or a copy if the pairs are not adjacent in memory. x is
// f32 or f64. Throws Error (invalid).
PLUGRAD_API Tensor view_as_complex(const Tensor& x);

}  // namespace plugrad
