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

enum class Kind : uint8_t { boolean, integer, floating, complex };

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

// The dtypes that kernels serve.
inline constexpr DTypeInfo kDTypes[] = {
#define PLUGRAD_DTYPE(name, id, enumerator, label, type, kind, digits, exponent, accumulator, dlpack) \
  {id, #name, label, sizeof(type), Kind::kind, digits, exponent, PLUGRAD_##accumulator, dlpack},
#include <plugrad/sdk/dtypes.def>
#undef PLUGRAD_DTYPE
};

namespace detail {
constexpr DTypeInfo complex_row(uint8_t dtype, const char* name, const char* label, uint8_t part, uint8_t dlpack_code) {
  DTypeInfo row{};
  for (const DTypeInfo& each : kDTypes)
    if (each.dtype == part) row = each;
  row.dtype = row.accumulator = dtype;
  row.name = name;
  row.label = label;
  row.size = static_cast<uint8_t>(2 * row.size);
  row.kind = Kind::complex;
  row.dlpack_code = dlpack_code;
  return row;
}
}  // namespace detail

// The complex dtypes. Their digits and exponents are those of their parts.
inline constexpr DTypeInfo kComplexDTypes[] = {
#define PLUGRAD_DTYPE(name, id, enumerator, label, type, kind, digits, exponent, accumulator, dlpack)
#define PLUGRAD_COMPLEX_DTYPE(name, id, enumerator, label, part, dlpack) \
  detail::complex_row(id, #name, label, PLUGRAD_##part, dlpack),
#include <plugrad/sdk/dtypes.def>
#undef PLUGRAD_DTYPE
};

inline constexpr uint32_t kDTypeIds = 16;  // every id is below

namespace detail {
template <class F> constexpr void for_each_dtype(F f) {
  for (const DTypeInfo& each : kDTypes) f(each);
  for (const DTypeInfo& each : kComplexDTypes) f(each);
}
// The row of a dtype; null: unknown.
inline constexpr std::array<const DTypeInfo*, kDTypeIds> kRows = [] {
  std::array<const DTypeInfo*, kDTypeIds> rows{};
  for_each_dtype([&](const DTypeInfo& each) { rows[each.dtype] = &each; });
  return rows;
}();
inline constexpr std::array<uint8_t, kDTypeIds> kSizes = [] {
  std::array<uint8_t, kDTypeIds> sizes{};
  for_each_dtype([&](const DTypeInfo& each) { sizes[each.dtype] = each.size; });
  return sizes;
}();
inline constexpr std::array<uint8_t, kDTypeIds> kAccumulators = [] {
  std::array<uint8_t, kDTypeIds> accumulators{};
  for_each_dtype([&](const DTypeInfo& each) { accumulators[each.dtype] = each.accumulator; });
  return accumulators;
}();
// The dtypes of a kind, as a bit set.
constexpr uint32_t dtypes_of(Kind kind) {
  uint32_t bits = 0;
  for_each_dtype([&](const DTypeInfo& each) { bits |= each.kind == kind ? 1u << each.dtype : 0; });
  return bits;
}
constexpr bool is_among(uint8_t dtype, uint32_t bits) { return dtype < kDTypeIds && bits >> dtype & 1; }
}  // namespace detail

// Returns the row of a dtype, or null for an unknown dtype.
constexpr const DTypeInfo* dtype_info(uint8_t dtype) { return dtype < kDTypeIds ? detail::kRows[dtype] : nullptr; }

// All are false for an unknown dtype.
constexpr bool is_floating(uint8_t dtype) { return detail::is_among(dtype, detail::dtypes_of(Kind::floating)); }
constexpr bool is_integer(uint8_t dtype) { return detail::is_among(dtype, detail::dtypes_of(Kind::integer)); }
constexpr bool is_boolean(uint8_t dtype) { return detail::is_among(dtype, detail::dtypes_of(Kind::boolean)); }
constexpr bool is_complex(uint8_t dtype) { return detail::is_among(dtype, detail::dtypes_of(Kind::complex)); }
// Floating or complex.
constexpr bool is_inexact(uint8_t dtype) {
  return detail::is_among(dtype, detail::dtypes_of(Kind::floating) | detail::dtypes_of(Kind::complex));
}

// Returns the dtype of the parts of a complex dtype, and any other dtype itself.
constexpr uint8_t part_dtype(uint8_t dtype) {
#define PLUGRAD_DTYPE(name, id, enumerator, label, type, kind, digits, exponent, accumulator, dlpack)
#define PLUGRAD_COMPLEX_DTYPE(name, id, enumerator, label, part, dlpack) \
  if (dtype == id) return PLUGRAD_##part;
#include <plugrad/sdk/dtypes.def>
#undef PLUGRAD_DTYPE
  return dtype;
}
// Returns the complex dtype with parts of this dtype; 0 if there is none.
constexpr uint8_t complex_dtype(uint8_t part) {
  for (const DTypeInfo& each : kComplexDTypes)
    if (part_dtype(each.dtype) == part) return each.dtype;
  return 0;
}

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
