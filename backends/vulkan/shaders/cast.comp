// CAST from the dtype SOURCE to the dtype TARGET, by way of a wide type. A pipeline sets SOURCE and TARGET. Variants:
// WITH_16 adds the dtypes of 16 bits, WITH_F64 adds f64.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#if defined(WITH_16)
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#endif
#include "grid.glsl"
#include "halves.glsl"

layout(constant_id = 5) const uint SOURCE = 0;
layout(constant_id = 6) const uint TARGET = 0;
REFERENCE(Byte, uint8_t, 1)
REFERENCE(Four, uint, 4)
REFERENCE(Eight, uint64_t, 8)
#if defined(WITH_16)
REFERENCE(Two, uint16_t, 2)
#endif
#if defined(WITH_F64)
#define REAL double
#define REAL_OF_EIGHT f64_of_bits
#else
#define REAL float
#define REAL_OF_EIGHT(bits) 0.0
#endif

bool is_real(uint dtype) { return dtype == F32_ID || dtype == F64_ID || dtype == F16_ID || dtype == BF16_ID; }
uint size_of(uint dtype) {
  if (dtype == U8_ID || dtype == I8_ID || dtype == BOOL_ID) return 1;
  if (dtype == F16_ID || dtype == BF16_ID || dtype == I16_ID) return 2;
  return dtype == F64_ID || dtype == I64_ID ? 8 : 4;
}

uint64_t stored(uint64_t address) {
  switch (size_of(SOURCE)) {
    case 1: return uint64_t(Byte(address).v);
#if defined(WITH_16)
    case 2: return uint64_t(Two(address).v);
#endif
    case 4: return uint64_t(Four(address).v);
  }
  return Eight(address).v;
}

void store(uint64_t address, uint64_t bits) {
  switch (size_of(TARGET)) {
    case 1: Byte(address).v = uint8_t(bits); break;
#if defined(WITH_16)
    case 2: Two(address).v = uint16_t(bits); break;
#endif
    case 4: Four(address).v = uint(bits); break;
    default: Eight(address).v = bits; break;
  }
}

uint bf16_of_f32(float x) {
  uint bits = floatBitsToUint(x);
  if (is_nan(x)) return bits >> 16 | 0x40u;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

REAL real_of(uint64_t bits) {
  switch (SOURCE) {
    case F16_ID: return REAL(f32_of_f16(uint(bits)));
    case BF16_ID: return REAL(uintBitsToFloat(uint(bits) << 16));
    case F64_ID: return REAL(REAL_OF_EIGHT(bits));
  }
  return REAL(f32_of_bits(bits));
}

int64_t integer_of(uint64_t bits) {
  switch (SOURCE) {
    case I32_ID: return int64_t(int(uint(bits)));
    case I16_ID: return int64_t(int(uint(bits) << 16) >> 16);
    case I8_ID: return int64_t(int(uint(bits) << 24) >> 24);
  }
  return int64_t(bits);
}

// Halves are rounded from an f32 that was rounded to odd: its last bit is 1 if the number was inexact, so that the second
// rounding is correct (S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
bool is_half(uint dtype) { return dtype == F16_ID || dtype == BF16_ID; }

// Converts a 64-bit integer to f32 by integers, because a device may convert by way of another type.
float f32_of_integer(int64_t x) {
  bool is_negative = (uint(uint64_t(x) >> 32) & 0x80000000u) != 0u;  // lavapipe takes x < 0 as false after some conversions
  uint64_t size = is_negative ? uint64_t(0) - uint64_t(x) : uint64_t(x);
  uint sign = is_negative ? 0x80000000u : 0u, high = uint(size >> 32);
  int lead = high != 0u ? 32 + findMSB(high) : findMSB(uint(size));
  if (lead < 0) return 0.0;
  if (lead <= 23) return uintBitsToFloat(sign | (uint(lead + 127) << 23) + (uint(size << uint(23 - lead)) & 0x7fffffu));
  uint drop = uint(lead - 23);
  if (drop == 0u) return uintBitsToFloat(sign | (uint(lead + 126) << 23) + uint(size));
  uint kept = uint(size >> drop);
  uint64_t low = size & ((uint64_t(1) << drop) - 1), middle = uint64_t(1) << (drop - 1);
  if (is_half(TARGET)) kept |= low != 0 ? 1u : 0u;
  else if (low > middle || (low == middle && (kept & 1u) != 0u)) ++kept;
  return uintBitsToFloat(sign | (uint(lead + 126) << 23) + kept);
}

#if defined(WITH_F64)
// Computes in integers, because a device may omit an operation that only rounds.
float rounded_to_odd(double x) {
  uint64_t size = bits_of(x) & 0x7ffffffffffffffful;
  uint sign = uint(bits_of(x) >> 32) & 0x80000000u;
  int exponent = int(size >> 52) - 1023;
  if (size == 0 || exponent > 127) return uintBitsToFloat(sign | (size == 0 ? 0u : 0x7f800000u));
  uint drop = 29u + uint(clamp(-126 - exponent, 0, 25));
  uint64_t significand = (size & 0xffffffffffffful) | 0x10000000000000ul;
  uint kept = uint(significand >> drop) | ((significand & ((uint64_t(1) << drop) - 1)) != 0 ? 1u : 0u);
  return uintBitsToFloat(sign | (exponent < -126 ? kept : (uint(exponent + 126) << 23) + kept));
}
float f32_of_real(double x) { return is_half(TARGET) && !is_nan(x) ? rounded_to_odd(x) : float(x); }
#else
float f32_of_real(float x) { return x; }
#endif

// Rounds a floating number towards zero and clamps it to the target's range.
int64_t truncated(REAL x) {
  int bits = TARGET == I64_ID ? 63 : TARGET == I32_ID ? 31 : TARGET == I16_ID ? 15 : TARGET == U8_ID ? 8 : 7;
  int64_t most = bits == 63 ? 9223372036854775807l : (int64_t(1) << uint(bits)) - 1;
  int64_t least = TARGET == U8_ID ? 0 : -most - 1;
  if (is_nan(x)) return 0;
  if (x >= REAL(most)) return most;  // rounds to a power of two where most has more bits than the type
  if (x <= REAL(least)) return least;
  return int64_t(x);
}

uint64_t bits_of_real(REAL x) {
  switch (TARGET) {
    case F16_ID: return uint64_t(f16_of_f32(f32_of_real(x)));
    case BF16_ID: return uint64_t(bf16_of_f32(f32_of_real(x)));
#if defined(WITH_F64)
    case F64_ID: return bits_of(x);
#endif
  }
  return uint64_t(floatBitsToUint(f32_of_real(x)));
}

uint64_t bits_of_integer(int64_t x) {
  if (TARGET == F32_ID) return uint64_t(floatBitsToUint(f32_of_integer(x)));
#if defined(WITH_F64)
  if (TARGET == F64_ID) return bits_of(double(x));
#endif
  if (is_real(TARGET)) return bits_of_real(REAL(f32_of_integer(x)));
  return uint64_t(x);
}

// Tests floating numbers by their bits, so that denormal numbers do not count as 0.
bool is_zero(uint64_t bits) {
  if (SOURCE == F64_ID) return (bits << 1) == 0;
  if (SOURCE == F32_ID) return (uint(bits) << 1) == 0u;
  if (SOURCE == F16_ID || SOURCE == BF16_ID) return (uint(bits) & 0x7fffu) == 0u;
  return bits == 0;
}

uint64_t converted(uint64_t bits) {
  if (TARGET == BOOL_ID) return is_zero(bits) ? 0 : 1;
  if (!is_real(SOURCE)) return bits_of_integer(integer_of(bits));
  return is_real(TARGET) ? bits_of_real(real_of(bits)) : uint64_t(truncated(real_of(bits)));
}

void main() {
  for (uint i = first_place(); i < grid.count; i += all_places()) {
    LOCATE(2)
    uint64_t bits = chosen(is_stored(1), stored(readable(1, ADDRESS(1, size_of(SOURCE)))), grid.value[1]);
    store(ADDRESS(0, size_of(TARGET)), converted(bits));
  }
}
