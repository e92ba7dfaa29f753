// How the kernels of this backend see a call's operands: C++ types for dtypes, immediates, and the calling device's threads.
#pragma once
#include <plugrad/sdk/backend.hpp>

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace plugrad::cpu {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

using Bool = uint8_t;  // 0 or 1 in memory; with C++'s bool a byte above 1 would be undefined behaviour
template <class T> using Stored = std::conditional_t<std::is_same_v<T, bool>, Bool, T>;
// An unsigned integer of an element's size, to move elements with their NaN payloads.
template <size_t size>
using BitsOf =
    std::conditional_t<size == 1, uint8_t,
                       std::conditional_t<size == 2, uint16_t, std::conditional_t<size == 4, uint32_t, uint64_t>>>;

// Computing kernels take a byte for a truth value: elements of u8 are only moved and converted.
template <class T>
inline constexpr uint8_t kDtype = std::is_same_v<T, Bool> ? static_cast<uint8_t>(PLUGRAD_BOOL) : element_dtype<T>;

// Returns the value of an immediate of T's dtype.
template <class T> inline T immediate_of(const plugrad_view& view) {
  if constexpr (is_floating(kDtype<T>)) return static_cast<T>(__builtin_bit_cast(double, view.offset));
  else if constexpr (kDtype<T> == PLUGRAD_BOOL) return view.offset != 0;
  else return static_cast<T>(view.offset);
}

// Returns the value of an operand with one element, immediate or not.
template <class T> inline T element(const plugrad_view& view) {
  return is_immediate(view) ? immediate_of<T>(view) : *data<T>(view);
}

// Writes an immediate to memory in its dtype, to be read like an operand with stride 0.
inline char* spill(const plugrad_view& view, char* slot) {
  with_element_type(view.dtype, [&]<class T>(T) {
    const auto value = static_cast<Stored<T>>(immediate<T>(view));
    std::memcpy(slot, &value, sizeof value);
  });
  return slot;
}

// Returns the address of an operand's first element; an immediate is first written to `slot` (8 bytes).
inline char* address(const plugrad_view& view, char* slot) {
  return is_immediate(view) ? spill(view, slot) : data<char>(view);
}

// Returns the bytes between neighbouring elements along d; 0 for an immediate and for an extent of 1.
inline int64_t step(const plugrad_view& view, int d) {
  if (is_immediate(view) || view.shape[d] == 1) return 0;
  return view.strides[d] * static_cast<int64_t>(element_size(view.dtype));
}

// Whether the elements are dense in row-major order.
inline bool is_dense(const plugrad_view& view) { return !(view.layout & (PLUGRAD_STRIDED | PLUGRAD_IMMEDIATE)); }

// Returns how many threads the device of this call may use.
int threads_of(const Call& call);

}  // namespace plugrad::cpu
