// The dtypes of dtypes.def as C++: their properties and the types of their elements.
#pragma once
#include <plugrad/sdk/abi.h>
#include <plugrad/sdk/halves.hpp>

#include <array>
#include <cstdint>
#include <type_traits>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

enum class Kind : uint8_t { boolean, integer, floating };

struct DTypeInfo {
  uint8_t dtype;
  const char* name;   // "F32"
  const char* label;  // "f32"
  uint8_t size;       // bytes of an element
  Kind kind;
  int digits, exponent_bits;  // as dtypes.def explains them
  uint8_t accumulator;
  uint8_t dlpack_code;

  constexpr bool is_unsigned() const { return kind == Kind::integer && digits == 8 * size; }
  // The exponents of the largest finite number and of the smallest normal number; for floating dtypes only.
  constexpr int highest_exponent() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr int lowest_exponent() const { return 1 - highest_exponent(); }
};

inline constexpr DTypeInfo kDTypes[] = {
#define PLUGRAD_DTYPE(name, id, enumerator, label, type, kind, digits, exponent, accumulator, dlpack) \
  {id, #name, label, sizeof(type), Kind::kind, digits, exponent, PLUGRAD_##accumulator, dlpack},
#include <plugrad/sdk/dtypes.def>
#undef PLUGRAD_DTYPE
};

inline constexpr uint32_t kDTypeIds = 16;  // every id is below

namespace detail {
// The index of a dtype in kDTypes plus 1; 0: unknown.
inline constexpr std::array<uint8_t, kDTypeIds> kPlaces = [] {
  std::array<uint8_t, kDTypeIds> places{};
  for (size_t i = 0; i < std::size(kDTypes); ++i) places[kDTypes[i].dtype] = static_cast<uint8_t>(i + 1);
  return places;
}();
inline constexpr std::array<uint8_t, kDTypeIds> kSizes = [] {
  std::array<uint8_t, kDTypeIds> sizes{};
  for (const DTypeInfo& each : kDTypes) sizes[each.dtype] = each.size;
  return sizes;
}();
inline constexpr std::array<uint8_t, kDTypeIds> kAccumulators = [] {
  std::array<uint8_t, kDTypeIds> accumulators{};
  for (const DTypeInfo& each : kDTypes) accumulators[each.dtype] = each.accumulator;
  return accumulators;
}();
// The dtypes of a kind, as a bit set.
constexpr uint32_t dtypes_of(Kind kind) {
  uint32_t bits = 0;
  for (const DTypeInfo& each : kDTypes)
    if (each.kind == kind) bits |= 1u << each.dtype;
  return bits;
}
constexpr bool is_among(uint8_t dtype, uint32_t bits) { return dtype < kDTypeIds && bits >> dtype & 1; }
}  // namespace detail

// Returns the row of a dtype, or null for an unknown dtype.
constexpr const DTypeInfo* dtype_info(uint8_t dtype) {
  const uint8_t place = dtype < kDTypeIds ? detail::kPlaces[dtype] : uint8_t{0};
  return place ? &kDTypes[place - 1] : nullptr;
}

// All three are false for an unknown dtype.
constexpr bool is_floating(uint8_t dtype) { return detail::is_among(dtype, detail::dtypes_of(Kind::floating)); }
constexpr bool is_integer(uint8_t dtype) { return detail::is_among(dtype, detail::dtypes_of(Kind::integer)); }
constexpr bool is_boolean(uint8_t dtype) { return detail::is_among(dtype, detail::dtypes_of(Kind::boolean)); }

// Returns the bytes of an element; 0 for an unknown dtype.
constexpr uint64_t element_size(uint8_t dtype) { return dtype < kDTypeIds ? detail::kSizes[dtype] : 0; }

// Returns the least precise dtype in which sums may be computed; 0 for an unknown dtype.
constexpr uint8_t accumulator_dtype(uint8_t dtype) { return dtype < kDTypeIds ? detail::kAccumulators[dtype] : uint8_t{0}; }

// Returns the label, such as "f32"; "unknown dtype" for an unknown dtype.
constexpr const char* dtype_label_of(uint8_t dtype) {
  const DTypeInfo* info = dtype_info(dtype);
  return info ? info->label : "unknown dtype";
}

// A list of element types.
template <class... T> struct Types {};

namespace detail {
template <class, class... T> struct AllBut {
  using type = Types<T...>;
};
}  // namespace detail

// The element types of all dtypes, in the order of the table.
using EveryType = detail::AllBut<void
#define PLUGRAD_DTYPE(name, id, enumerator, label, type, kind, digits, exponent, accumulator, dlpack) , type
#include <plugrad/sdk/dtypes.def>
#undef PLUGRAD_DTYPE
                                 >::type;

// The dtype of a C++ type; 0 if there is none.
template <class T> inline constexpr uint8_t element_dtype = 0;
#define PLUGRAD_DTYPE(name, id, enumerator, label, type, kind, digits, exponent, accumulator, dlpack) \
  template <> inline constexpr uint8_t element_dtype<type> = id;
#include <plugrad/sdk/dtypes.def>
#undef PLUGRAD_DTYPE

namespace detail {
template <uint8_t dtype> struct Element;
#define PLUGRAD_DTYPE(name, id, enumerator, label, type_, kind, digits, exponent, accumulator, dlpack) \
  template <> struct Element<id> {                                                                     \
    using type = type_;                                                                                \
  };
#include <plugrad/sdk/dtypes.def>
#undef PLUGRAD_DTYPE
}  // namespace detail

// The C++ type of a dtype's elements.
template <uint8_t dtype> using ElementType = typename detail::Element<dtype>::type;
// The least precise type in which sums of T may be computed.
template <class T> using AccumulatorType = ElementType<dtype_info(element_dtype<T>)->accumulator>;

namespace detail {
template <class T, bool is_arithmetic, bool is_element> struct Compute {};
template <class T, bool is_element> struct Compute<T, true, is_element> {
  using type = T;
};
template <class T> struct Compute<T, false, true> {
  using type = AccumulatorType<T>;
};
}  // namespace detail

// The type in which one element is computed: T itself, except for storage-only types such as BFloat16. Only types of
// elements have it.
template <class T> using ComputeType = typename detail::Compute<T, std::is_arithmetic_v<T>, element_dtype<T> != 0>::type;
template <class T> PLUGRAD_FUNCTION constexpr ComputeType<T> widened(T x) { return static_cast<ComputeType<T>>(x); }

// Calls body(T{}) with the element type of a dtype. Returns whether the dtype is known.
template <class Body> constexpr bool with_element_type(uint8_t dtype, Body&& body) {
  const auto one = [&]<class T>(T zero) {
    if (dtype != element_dtype<T>) return false;
    body(zero);
    return true;
  };
  return [&]<class... T>(Types<T...>) { return (one(T{}) || ...); }(EveryType{});
}

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
