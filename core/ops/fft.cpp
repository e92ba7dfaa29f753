#include <plugrad/ops/fft.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/autocast_rules.hpp>
#include <core/ops/fourier.hpp>
#include <core/ops/run.hpp>
#include <plugrad/ops/arithmetic.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/complex.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <cmath>

namespace plugrad::fft {
namespace {

// A transform along an axis.
struct Along {
  const char* name;
  int axis;
  int64_t n;
  Norm norm;
};

double scale_of(const Along& how, bool backward) {
  if (how.norm == Norm::ortho) return 1 / std::sqrt(static_cast<double>(how.n));
  return (how.norm == Norm::backward) == backward ? 1 / static_cast<double>(how.n) : 1;
}

// x in a dtype that is transformed: f32, f64, c64 or c128.
Tensor operand(const char* name, const Tensor& x) {
  require_defined(x, name);
  if (is_complex(x.dtype())) return x;
  return cast(x, x.dtype() == DType::f64 ? DType::f64 : DType::f32);
}
Tensor complex_operand(const char* name, const Tensor& x) {
  const Tensor taken = operand(name, x);
  return cast(taken, complex_of(taken.dtype()));
}
Tensor real_operand(const char* name, const Tensor& x) {
  require_defined(x, name);
  if (is_complex(x.dtype()))
    refuse(name,
           std::string("x is ") + dtype_name(x.dtype()) + ", expected real numbers: take real(x), or another function");
  return operand(name, x);
}

int64_t checked_length(const char* name, int64_t n) {
  if (n < 1) refuse(name, "the length is " + std::to_string(n) + ": expected 1 or more");
  return n;
}

// x cut or padded with zeros to `extent` along the axis.
Tensor with_extent(const Tensor& x, int axis, int64_t extent) {
  const int64_t size = x.size(axis);
  if (size == extent) return x;
  if (size > extent) return slice(x, axis, 0, extent);
  std::vector<int64_t> pads(static_cast<size_t>(2 * (x.rank() - axis)), 0);
  pads.back() = extent - size;
  return pad(x, pads);
}

// --- Along one axis, of operands in their dtype.

Tensor complex_along(const Tensor& x, const Along& how, bool backward) {
  const Tensor pairs = view_as_real(with_extent(x, how.axis, how.n));
  const uint32_t kind = backward ? PLUGRAD_FFT_BACKWARD : PLUGRAD_FFT_FORWARD;
  return view_as_complex(fourier::transformed(pairs, {kind, how.axis, how.n, scale_of(how, backward)}));
}
// backward: the half of the backward transform, for ihfft.
Tensor half_along(const Tensor& x, const Along& how, bool backward) {
  const Tensor whole = with_extent(x, how.axis, how.n);
  const Tensor half =
      view_as_complex(fourier::transformed(whole, {PLUGRAD_FFT_REAL, how.axis, how.n, scale_of(how, backward)}));
  return backward ? conj(half) : half;
}
// !backward: the forward transform, for hfft.
Tensor whole_along(const Tensor& x, const Along& how, bool backward) {
  const Tensor half = with_extent(x, how.axis, how.n / 2 + 1);
  const Tensor pairs = view_as_real(backward ? half : conj(half));
  return fourier::transformed(pairs, {PLUGRAD_FFT_INVERSE_REAL, how.axis, how.n, scale_of(how, backward)});
}

// n: given, or the axis's extent, or with `half` the length whose half that is.
Along along(const char* name, const Tensor& x, std::optional<int64_t> n, int axis, Norm norm, bool half = false) {
  if (!x.rank()) refuse(name, "x has no axis: expected one or more");
  const int at = normal_axis(axis, x.rank(), name);
  const int64_t length = n ? *n : half ? 2 * (x.size(at) - 1) : x.size(at);
  return {name, at, checked_length(name, length), norm};
}

// --- Along several axes.

struct Axes {
  Shape sizes, axes;  // as many; axes from 0, in the order of the call
};

Axes axes_of(const char* name, const Tensor& x, const Shape& sizes, const Shape& axes, bool half) {
  Axes all{sizes, axes};
  if (axes.empty()) {
    const int count = sizes.empty() ? x.rank() : sizes.rank();
    if (count > x.rank())
      refuse(name,
             "there are sizes " + sizes.text() + " for x of shape " + x.shape().text() + ": expected one for each axis");
    for (int i = x.rank() - count; i < x.rank(); ++i) all.axes.push_back(i);
  } else {
    all.axes = normal_axes(axes, x.rank(), name);
  }
  if (!sizes.empty() && sizes.rank() != all.axes.rank())
    refuse(name, "there are sizes " + sizes.text() + " for the axes " + all.axes.text() + ": expected one for each axis");
  for (int i = 0; sizes.empty() && i < all.axes.rank(); ++i) {
    const int64_t extent = x.size(static_cast<int>(all.axes[i]));
    all.sizes.push_back(half && i + 1 == all.axes.rank() ? 2 * (extent - 1) : extent);
  }
  for (const int64_t n : all.sizes) checked_length(name, n);
  return all;
}

// Along all axes but the last `rest` of them.
Tensor complex_along_all(const char* name, Tensor x, const Axes& all, int rest, Norm norm, bool backward) {
  for (int i = all.axes.rank() - 1 - rest; i >= 0; --i)
    x = complex_along(x, {name, static_cast<int>(all.axes[i]), all.sizes[i], norm}, backward);
  return x;
}
Along last_of(const char* name, const Axes& all, Norm norm) {
  if (all.axes.empty()) refuse(name, "there is no axis: expected one or more");
  const int last = all.axes.rank() - 1;
  return {name, static_cast<int>(all.axes[last]), all.sizes[last], norm};
}

Tensor complex_transforms(const char* name, const Tensor& x, const Shape& sizes, const Shape& axes, Norm norm,
                          bool backward) {
  const Tensor taken = complex_operand(name, x);
  return complex_along_all(name, taken, axes_of(name, taken, sizes, axes, false), 0, norm, backward);
}
Tensor half_transforms(const char* name, const Tensor& x, const Shape& sizes, const Shape& axes, Norm norm, bool backward) {
  const Tensor taken = real_operand(name, x);
  const Axes all = axes_of(name, taken, sizes, axes, false);
  return complex_along_all(name, half_along(taken, last_of(name, all, norm), backward), all, 1, norm, backward);
}
Tensor whole_transforms(const char* name, const Tensor& x, const Shape& sizes, const Shape& axes, Norm norm, bool backward) {
  const Tensor taken = complex_operand(name, x);
  const Axes all = axes_of(name, taken, sizes, axes, true);
  const Along last = last_of(name, all, norm);
  return whole_along(complex_along_all(name, taken, all, 1, norm, backward), last, backward);
}

// Shifts by half of each axis's extent, rounded down, or up for the inverse.
Tensor shifted(const char* name, const Tensor& x, const Shape& axes, bool inverse) {
  require_defined(x, name);
  const Shape all = normal_axes(axes, x.rank(), name);
  Shape shifts;
  for (const int64_t axis : all) {
    const int64_t extent = x.size(static_cast<int>(axis));
    shifts.push_back(inverse ? (extent + 1) / 2 : extent / 2);
  }
  return all.empty() ? x : roll(x, shifts, all);
}

}  // namespace

Tensor fft(const Tensor& x, std::optional<int64_t> n, int axis, Norm norm) {
  const Tensor taken = complex_operand("fft.fft", x);
  return complex_along(taken, along("fft.fft", taken, n, axis, norm), false);
}
Tensor ifft(const Tensor& x, std::optional<int64_t> n, int axis, Norm norm) {
  const Tensor taken = complex_operand("fft.ifft", x);
  return complex_along(taken, along("fft.ifft", taken, n, axis, norm), true);
}
Tensor rfft(const Tensor& x, std::optional<int64_t> n, int axis, Norm norm) {
  const Tensor taken = real_operand("fft.rfft", x);
  return half_along(taken, along("fft.rfft", taken, n, axis, norm), false);
}
Tensor irfft(const Tensor& x, std::optional<int64_t> n, int axis, Norm norm) {
  const Tensor taken = complex_operand("fft.irfft", x);
  return whole_along(taken, along("fft.irfft", taken, n, axis, norm, true), true);
}
Tensor hfft(const Tensor& x, std::optional<int64_t> n, int axis, Norm norm) {
  const Tensor taken = complex_operand("fft.hfft", x);
  return whole_along(taken, along("fft.hfft", taken, n, axis, norm, true), false);
}
Tensor ihfft(const Tensor& x, std::optional<int64_t> n, int axis, Norm norm) {
  const Tensor taken = real_operand("fft.ihfft", x);
  return half_along(taken, along("fft.ihfft", taken, n, axis, norm), true);
}

Tensor fftn(const Tensor& x, const Shape& sizes, const Shape& axes, Norm norm) {
  return complex_transforms("fft.fftn", x, sizes, axes, norm, false);
}
Tensor ifftn(const Tensor& x, const Shape& sizes, const Shape& axes, Norm norm) {
  return complex_transforms("fft.ifftn", x, sizes, axes, norm, true);
}
Tensor rfftn(const Tensor& x, const Shape& sizes, const Shape& axes, Norm norm) {
  return half_transforms("fft.rfftn", x, sizes, axes, norm, false);
}
Tensor irfftn(const Tensor& x, const Shape& sizes, const Shape& axes, Norm norm) {
  return whole_transforms("fft.irfftn", x, sizes, axes, norm, true);
}
Tensor hfftn(const Tensor& x, const Shape& sizes, const Shape& axes, Norm norm) {
  return whole_transforms("fft.hfftn", x, sizes, axes, norm, false);
}
Tensor ihfftn(const Tensor& x, const Shape& sizes, const Shape& axes, Norm norm) {
  return half_transforms("fft.ihfftn", x, sizes, axes, norm, true);
}

Tensor fftfreq(int64_t n, double d, DType dtype, Device device) {
  checked_length("fft.fftfreq", n);
  const Tensor counts = arange(-(n / 2), (n + 1) / 2, 1, DType::i64, device);
  return div(cast(ifftshift(counts), dtype), static_cast<double>(n) * d);
}
Tensor rfftfreq(int64_t n, double d, DType dtype, Device device) {
  checked_length("fft.rfftfreq", n);
  return div(cast(arange(0, n / 2 + 1, 1, DType::i64, device), dtype), static_cast<double>(n) * d);
}

Tensor fftshift(const Tensor& x, const Shape& axes) { return shifted("fft.fftshift", x, axes, false); }
Tensor ifftshift(const Tensor& x, const Shape& axes) { return shifted("fft.ifftshift", x, axes, true); }

}  // namespace plugrad::fft
