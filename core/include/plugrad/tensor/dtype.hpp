// Element types.
#pragma once
#include <plugrad/runtime/api.hpp>
#include <plugrad/sdk/dtypes.hpp>

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <type_traits>

namespace plugrad {

enum class DType : uint8_t {
#define PLUGRAD_DTYPE(name, id, enumerator, label, type, kind, digits, exponent, accumulator, dlpack) enumerator = id,
#define PLUGRAD_COMPLEX_DTYPE(name, id, enumerator, label, part, dlpack) enumerator = id,
#include <plugrad/sdk/dtypes.def>
#undef PLUGRAD_DTYPE
};
// The dtypes of real numbers, integers and bools, in the order of dtypes.def.
inline constexpr DType kRealDTypes[] = {
#define PLUGRAD_DTYPE(name, id, enumerator, label, type, kind, digits, exponent, accumulator, dlpack) DType::enumerator,
#include <plugrad/sdk/dtypes.def>
#undef PLUGRAD_DTYPE
};
// All dtypes: those, and behind them the complex ones.
inline constexpr DType kEveryDType[] = {
#define PLUGRAD_DTYPE(name, id, enumerator, label, type, kind, digits, exponent, accumulator, dlpack) DType::enumerator,
#define PLUGRAD_COMPLEX_DTYPE(name, id, enumerator, label, part, dlpack) DType::enumerator,
#include <plugrad/sdk/dtypes.def>
#undef PLUGRAD_DTYPE
};

// Bytes of an element.
constexpr int64_t item_size(DType dtype) { return static_cast<int64_t>(element_size(static_cast<uint8_t>(dtype))); }
constexpr bool is_floating(DType dtype) { return is_floating(static_cast<uint8_t>(dtype)); }
constexpr bool is_complex(DType dtype) { return is_complex(static_cast<uint8_t>(dtype)); }
constexpr bool is_inexact(DType dtype) { return is_inexact(static_cast<uint8_t>(dtype)); }  // floating or complex
constexpr bool is_integer(DType dtype) { return is_integer(static_cast<uint8_t>(dtype)); }
// The dtype for sums of elements. Ops also compute in it if a device has no kernel in this dtype.
constexpr DType accumulator_of(DType dtype) {
  return static_cast<DType>(dtype_info(static_cast<uint8_t>(dtype))->accumulator);
}
// The dtype of the real and the imaginary part of a complex dtype; any other dtype itself.
constexpr DType part_of(DType dtype) { return static_cast<DType>(part_dtype(static_cast<uint8_t>(dtype))); }
// c128 for f64 and c128, c64 for all other dtypes.
constexpr DType complex_of(DType dtype) { return part_of(dtype) == DType::f64 ? DType::c128 : DType::c64; }
// The dtype of an op on operands of these dtypes, by the table of the array API standard, with its gaps filled as in
// PyTorch: the smaller kind takes the dtype of the larger (bool, integer, floating); within a kind the result is the
// smallest dtype for all values of both. f16 with bf16 is f32, u8 with i8 is i16. Beside a complex dtype the result is c128
// if either is f64 or c128, else c64.
constexpr DType promote_types(DType a, DType b) {
  if (is_complex(a) || is_complex(b)) return part_of(a) == DType::f64 || part_of(b) == DType::f64 ? DType::c128 : DType::c64;
  const DTypeInfo &x = *dtype_info(static_cast<uint8_t>(a)), &y = *dtype_info(static_cast<uint8_t>(b));
  if (x.kind != y.kind) return x.kind < y.kind ? b : a;
  const DTypeInfo* best = nullptr;
  for (const DTypeInfo& each : kDTypes) {
    const bool holds = each.kind == x.kind && each.digits >= x.digits && each.digits >= y.digits &&
                       each.exponent_bits >= x.exponent_bits && each.exponent_bits >= y.exponent_bits &&
                       (!each.is_unsigned() || (x.is_unsigned() && y.is_unsigned()));
    if (holds && (!best || each.size < best->size)) best = &each;
  }
  return static_cast<DType>(best->dtype);
}
// The dtype of an op on a tensor of this dtype and a number: the tensor's, but f32 for a fraction beside integers or bools,
// and i64 for a whole number beside bools.
constexpr DType promote_number(DType dtype, bool fraction) {
  if (is_inexact(dtype)) return dtype;
  if (fraction) return DType::f32;
  return is_integer(dtype) ? dtype : DType::i64;
}
// The dtype of functions with floating results: a floating or complex operand's own dtype, and f32 for integers and bools.
constexpr DType floating_type(DType dtype) { return is_inexact(dtype) ? dtype : DType::f32; }
// "f32", "bool", ...
PLUGRAD_API const char* dtype_name(DType dtype);
// The dtype with this name. Throws Error (invalid) for an unknown name; the message lists the known names.
PLUGRAD_API DType dtype_from_name(const std::string& name);
PLUGRAD_API std::ostream& operator<<(std::ostream& out, DType dtype);

template <class T> inline constexpr DType dtype_of_v = static_cast<DType>(element_dtype<T>);
// std::complex<float>, std::complex<double> and classes with their interface and layout. The concept spares all units that
// need no complex numbers the header <complex>, which includes <sstream>.
template <class T>
concept ComplexNumber = requires(const T& x) {
  { x.real() } -> std::same_as<typename T::value_type>;
  { x.imag() } -> std::same_as<typename T::value_type>;
} && std::is_floating_point_v<typename T::value_type> && sizeof(T) == 2 * sizeof(typename T::value_type);
template <ComplexNumber T> inline constexpr DType dtype_of_v<T> = complex_of(dtype_of_v<typename T::value_type>);

// Notes that a function looked at a number that differs from call to call: see Number::lifted.
PLUGRAD_API void note_number_read() noexcept;

// A scalar operand, floating or integral.
class Number {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  constexpr Number(T value)
      : floating_(std::is_floating_point_v<T>), real_(static_cast<double>(value)), integer_(integer_part(value)) {}
  // A number that a compiled step takes anew in each replay, as its `source`-th number, from 1. The step's recording holds
  // for other values only if no code looks at this value: ops take it as an operand, and nothing else depends on it.
  static constexpr Number lifted(Number value, uint32_t source) {
    value.source_ = source;
    return value;
  }
  constexpr bool floating() const { return floating_; }
  constexpr double real() const {
    if (source_) [[unlikely]]
      note_number_read();
    return real_;
  }
  constexpr int64_t integer() const {
    if (source_) [[unlikely]]
      note_number_read();
    return integer_;
  }
  constexpr uint32_t source() const { return source_; }    // 0 for all other numbers
  constexpr double lifted_value() const { return real_; }  // for an operand that is marked with the source

 private:
  template <class T> static constexpr int64_t integer_part(T value) {
    if constexpr (std::is_floating_point_v<T>) return value >= -9.2e18 && value <= 9.2e18 ? static_cast<int64_t>(value) : 0;
    else return static_cast<int64_t>(value);
  }
  bool floating_;
  uint32_t source_ = 0;
  double real_;
  int64_t integer_;
};

}  // namespace plugrad
