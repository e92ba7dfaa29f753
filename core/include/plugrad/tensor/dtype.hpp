// Element types.
#pragma once
#include <plugrad/runtime/api.hpp>
#include <plugrad/sdk/abi.h>

#include <cstdint>
#include <iosfwd>
#include <string>
#include <type_traits>

namespace plugrad {

enum class DType : uint8_t { f32 = PLUGRAD_F32, f64 = PLUGRAD_F64, i64 = PLUGRAD_I64, boolean = PLUGRAD_BOOL };

// Bytes of an element.
constexpr int64_t item_size(DType dtype) {
  return dtype == DType::f32 ? 4 : dtype == DType::boolean ? 1 : 8;
}
constexpr bool is_floating(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }
// "f32", "bool", ...
PLUGRAD_API const char* dtype_name(DType dtype);
// The reverse. Throws Error (invalid) that lists the names.
PLUGRAD_API DType dtype_from_name(const std::string& name);
PLUGRAD_API std::ostream& operator<<(std::ostream& out, DType dtype);

template <class T> struct DTypeOf;
template <> struct DTypeOf<float> { static constexpr DType value = DType::f32; };
template <> struct DTypeOf<double> { static constexpr DType value = DType::f64; };
template <> struct DTypeOf<int64_t> { static constexpr DType value = DType::i64; };
template <> struct DTypeOf<bool> { static constexpr DType value = DType::boolean; };
template <class T> inline constexpr DType dtype_of_v = DTypeOf<T>::value;

// A number beside a tensor: floating or integral.
class Number {
 public:
  template <class T> requires std::is_arithmetic_v<T>
  constexpr Number(T value)
      : floating_(std::is_floating_point_v<T>), real_(static_cast<double>(value)), integer_(integer_part(value)) {}
  constexpr bool floating() const { return floating_; }
  constexpr double real() const { return real_; }
  constexpr int64_t integer() const { return integer_; }

 private:
  template <class T> static constexpr int64_t integer_part(T value) {
    if constexpr (std::is_floating_point_v<T>) return value >= -9.2e18 && value <= 9.2e18 ? static_cast<int64_t>(value) : 0;
    else return static_cast<int64_t>(value);
  }
  bool floating_;
  double real_;
  int64_t integer_;
};

}  // namespace plugrad
