// Discrete Fourier transforms, with the names and conventions of NumPy's and PyTorch's fft.
//
// X[k] = sum over j of x[j] e^(-2 pi i j k / n); a backward transform has the opposite sign. Results are c64, and c128 for
// f64 and c128; the results of irfft and hfft are f32 and f64. Operands of other dtypes are cast. All functions have
// gradients.
//
// n: the length; a longer axis is cut and a shorter one padded with zeros. Without it, the axis's extent (m for real
// results: 2 (m - 1)). Functions throw Error (invalid) for a length below 1, and for an axis that x lacks.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>

namespace plugrad::fft {

// Which transforms are scaled, n being the number of elements: the backward ones by 1 / n, the forward ones by 1 / n, or
// both by 1 / sqrt(n).
enum class Norm : uint8_t { backward, forward, ortho };

// Returns the transform along the axis.
PLUGRAD_API Tensor fft(const Tensor& x, std::optional<int64_t> n = {}, int axis = -1, Norm norm = Norm::backward);
// Returns the backward transform along the axis: the inverse of fft.
PLUGRAD_API Tensor ifft(const Tensor& x, std::optional<int64_t> n = {}, int axis = -1, Norm norm = Norm::backward);
// Returns the first n / 2 + 1 elements of the transform of real numbers; the others are their conjugates. Throws Error
// (invalid) for a complex x.
PLUGRAD_API Tensor rfft(const Tensor& x, std::optional<int64_t> n = {}, int axis = -1, Norm norm = Norm::backward);
// Returns n real numbers from the first n / 2 + 1 elements of their transform: the inverse of rfft. Imaginary parts of
// elements that are their own conjugates, the first and for an even n the last, are ignored.
PLUGRAD_API Tensor irfft(const Tensor& x, std::optional<int64_t> n = {}, int axis = -1, Norm norm = Norm::backward);
// Returns the n real numbers of the forward transform of numbers of which n / 2 + 1 are given; the others are their
// conjugates.
PLUGRAD_API Tensor hfft(const Tensor& x, std::optional<int64_t> n = {}, int axis = -1, Norm norm = Norm::backward);
// Returns the first n / 2 + 1 elements of the backward transform of real numbers: the inverse of hfft.
PLUGRAD_API Tensor ihfft(const Tensor& x, std::optional<int64_t> n = {}, int axis = -1, Norm norm = Norm::backward);

// The same along several axes, one after the other; the transforms of real numbers have their half along the last of the
// axes. sizes: a length for each axis, or none. axes: all without sizes, else the last ones. Throws Error (invalid) if
// there are not as many sizes as axes, for an axis named twice, and for no axis where there is a half.
PLUGRAD_API Tensor fftn(const Tensor& x, const Shape& sizes = {}, const Shape& axes = {}, Norm norm = Norm::backward);
// Returns the backward transform along several axes: the inverse of fftn.
PLUGRAD_API Tensor ifftn(const Tensor& x, const Shape& sizes = {}, const Shape& axes = {}, Norm norm = Norm::backward);
// Returns rfft along the last of the axes, then fft along the others.
PLUGRAD_API Tensor rfftn(const Tensor& x, const Shape& sizes = {}, const Shape& axes = {}, Norm norm = Norm::backward);
// Returns ifft along all axes but the last, then irfft along the last: the inverse of rfftn.
PLUGRAD_API Tensor irfftn(const Tensor& x, const Shape& sizes = {}, const Shape& axes = {}, Norm norm = Norm::backward);
// Returns fft along all axes but the last, then hfft along the last.
PLUGRAD_API Tensor hfftn(const Tensor& x, const Shape& sizes = {}, const Shape& axes = {}, Norm norm = Norm::backward);
// Returns ihfft along the last of the axes, then ifft along the others: the inverse of hfftn.
PLUGRAD_API Tensor ihfftn(const Tensor& x, const Shape& sizes = {}, const Shape& axes = {}, Norm norm = Norm::backward);

// Returns the frequencies (n,) of the elements of a transform, in cycles per unit of the spacing d: 0, 1, .., -1 divided
// by n d. Throws Error (invalid) for an n below 1.
PLUGRAD_API Tensor fftfreq(int64_t n, double d = 1, DType dtype = DType::f32, Device device = default_device());
// Returns the frequencies (n / 2 + 1,) of rfft's elements: 0, 1, .., n / 2 divided by n d. Throws Error (invalid) for an n
// below 1.
PLUGRAD_API Tensor rfftfreq(int64_t n, double d = 1, DType dtype = DType::f32, Device device = default_device());
// Returns x with the frequency 0 moved from the beginning to the middle of each axis; all axes if none is named.
PLUGRAD_API Tensor fftshift(const Tensor& x, const Shape& axes = {});
// Returns x with the frequency 0 moved from the middle to the beginning of each axis: the inverse of fftshift.
PLUGRAD_API Tensor ifftshift(const Tensor& x, const Shape& axes = {});

}  // namespace plugrad::fft
