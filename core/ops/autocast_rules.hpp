// The effect of an Autocast on the operands of functions. An affected function begins with
//   if (autocasting()) [[unlikely]] return in_low_precision(matmul, a, b);
#pragma once
#include <core/autograd/autocast.hpp>
#include <core/ops/argument.hpp>

namespace plugrad {

// narrowed: x in the region's dtype; widened: x in f32 if x is bf16 or f16. x itself if it is undefined, has another kind of
// dtype, or is on a device outside the region.
Tensor narrowed(const Tensor& x);
Tensor widened(const Tensor& x);

// Whether the region widens x. In a function of a single tensor this check is faster than a check for a region first.
inline bool widens(const Tensor& x) { return x.defined() && is_half(dtype_of(x)) && autocasting(); }

namespace detail {
inline bool is_f64(const Tensor& x) { return x.defined() && x.dtype() == DType::f64; }
template <class T> bool is_f64(const T&) { return false; }
template <class T> const T& narrowed_argument(const T& other) { return other; }
template <class T> const T& widened_argument(const T& other) { return other; }
inline Tensor narrowed_argument(const Tensor& x) { return narrowed(x); }
inline Tensor widened_argument(const Tensor& x) { return widened(x); }
}  // namespace detail

// f with its tensors converted, outside the region.
template <class F, class... A> auto in_low_precision(F f, const A&... arguments) {
  const WithoutAutocast plain;
  return (detail::is_f64(arguments) || ...) ? f(arguments...) : f(detail::narrowed_argument(arguments)...);
}
template <class F, class... A> auto in_f32(F f, const A&... arguments) {
  const WithoutAutocast plain;
  return f(detail::widened_argument(arguments)...);
}

}  // namespace plugrad
