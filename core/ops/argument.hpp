// Checks of arguments, shared by functions composed of several ops. Errors name the function.
#pragma once
#include <core/tensor/impl.hpp>
#include <plugrad/ops/elementwise.hpp>

#include <string>

namespace plugrad {

[[noreturn]] inline void refuse(const char* name, const std::string& why) {
  throw Error(Code::invalid, std::string("[") + name + "] " + why);
}

inline void require_floating(const char* name, const Tensor& x) {
  require_defined(x, name);
  if (!is_floating(x.dtype()))
    refuse(name, std::string("an operand is ") + dtype_name(x.dtype()) + ", expected a floating dtype: cast it");
}

inline void require_inexact(const char* name, const Tensor& x) {
  require_defined(x, name);
  if (!is_inexact(x.dtype()))
    refuse(name, std::string("an operand is ") + dtype_name(x.dtype()) + ", expected a floating or complex dtype: cast it");
}

// For functions that need an order of numbers.
inline void require_real(const char* name, const Tensor& x) {
  require_defined(x, name);
  if (is_complex(x.dtype())) refuse(name, "not defined for complex numbers: apply it to real(x), imag(x) or abs(x)");
}

inline void require_dtype(const char* name, const Tensor& x, DType dtype, const char* role) {
  require_defined(x, name);
  if (x.dtype() != dtype)
    refuse(name,
           std::string(role) + " has dtype " + dtype_name(x.dtype()) + ", expected " + dtype_name(dtype) + ": cast it");
}

inline void require_integer(const char* name, const Tensor& x, const char* role) {
  require_defined(x, name);
  if (!is_integer(x.dtype()))
    refuse(name, std::string(role) + " has dtype " + dtype_name(x.dtype()) + ", expected an integer dtype: cast it");
}

// The axes as numbers from 0, each once. All axes if none is given. Rank 0 permits the axis 0 and has none.
inline Shape normal_axes(const Shape& axes, int rank, const char* name) {
  Shape all;
  unsigned seen = 0;
  for (int i = 0; axes.empty() && i < rank; ++i) all.push_back(i);
  for (const int64_t axis : axes) {
    const int at = normal_axis(axis, rank ? rank : 1, name);
    if (seen >> at & 1) refuse(name, "axis " + std::to_string(at) + " appears twice in " + axes.text() + ": name it once");
    seen |= 1u << at;
    if (rank) all.push_back(at);
  }
  return all;
}

namespace detail {
inline constexpr uint32_t kHalves = [] {
  uint32_t bits = 0;
  for (const DTypeInfo& each : kDTypes)
    if (is_floating(each.dtype) && each.accumulator != each.dtype) bits |= 1u << each.dtype;
  return bits;
}();
}  // namespace detail
// Whether a dtype is floating and kernels sum it in a wider dtype: bf16 and f16.
constexpr bool is_half(uint8_t dtype) { return detail::is_among(dtype, detail::kHalves); }

// x, or x as f32 if its dtype is f16 or bf16: the results of several ops are then not rounded separately.
Tensor at_least_f32(const Tensor& x);
// f(at_least_f32(x)), in x's dtype.
template <class F> Tensor rounded_once(const Tensor& x, F f) { return cast(f(at_least_f32(x)), x.dtype()); }

// Whether all tensors are bf16, or all f16.
template <class... Tensors> bool are_halves(const Tensor& x, const Tensors&... others) {
  return x.defined() && is_half(dtype_of(x)) && ((others.defined() && dtype_of(others) == dtype_of(x)) && ...);
}
namespace detail {
template <class T> const T& wide_argument(const T& other) { return other; }
inline Tensor wide_argument(const Tensor& x) { return x.defined() ? at_least_f32(x) : x; }
}  // namespace detail
// Calls f with its tensors in f32 at least, and rounds the result to x's dtype. A composition of ops begins with
//   if (are_halves(x, target)) return rounded_once(x, mse_loss, x, target, reduction);
template <class F, class First, class... Rest>
Tensor rounded_once(const Tensor& x, F f, const First& first, const Rest&... rest) {
  return cast(f(detail::wide_argument(first), detail::wide_argument(rest)...), x.dtype());
}

}  // namespace plugrad
