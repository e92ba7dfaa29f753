// The part that all shaders share: types of elements, the constants that a pipeline sets, bits of numbers, and comparisons.
// A variant may define one of F32, F64, I64, I32 and U8; its elements then have the type T. The build writes table.glsl,
// which defines the opcodes as OP_ADD and so on, and the dtypes as F32_ID and so on.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "table.glsl"

layout(local_size_x = 256) in;
const uint GROUP = 256;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint MODE = 0;
// True if the device may flush denormal numbers: comparisons then use the bits.
layout(constant_id = 2) const bool MAY_FLUSH = false;
// True if the shader corrects the device's division and square root to the last bit.
layout(constant_id = 3) const bool CORRECTED = true;
// For tests: 1 flushes denormal numbers, 2 divides by an approximate reciprocal.
layout(constant_id = 4) const uint EMULATED = 0;

#define REFERENCE(name, type, size) \
  layout(buffer_reference, scalar, buffer_reference_align = size) buffer name { type v; };

#if defined(F32)
#define T float
#define SIZE 4
#define IS_FLOATING
#elif defined(F64)
#define T double
#define SIZE 8
#define IS_FLOATING
#elif defined(I64)
#define T int64_t
#define SIZE 8
#elif defined(I32)
#define T int
#define SIZE 4
#elif defined(U8)
#define T uint8_t
#define SIZE 1
#endif

float f32_of_bits(uint64_t bits) { return uintBitsToFloat(uint(bits)); }
bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
// Returns the larger number, or NaN if a or b is NaN.
float larger(float a, float b) { return is_nan(a) ? a : is_nan(b) ? b : a > b ? a : b; }
float flushed(float x) {
  uint bits = floatBitsToUint(x);
  return (EMULATED & 1u) != 0u && (bits & 0x7f800000u) == 0u ? uintBitsToFloat(bits & 0x80000000u) : x;
}
// Maps numbers to integers of the same order; 0 and -0 map to the same integer.
int order(float x) {
  int bits = floatBitsToInt(x);
  return bits >= 0 ? bits : -2147483647 - 1 - bits;
}
bool less(float a, float b) {
  if (!MAY_FLUSH) return a < b;
  return !is_nan(a) && !is_nan(b) && order(a) < order(b);
}
bool equal(float a, float b) {
  if (!MAY_FLUSH) return a == b;
  return !is_nan(a) && !is_nan(b) && order(a) == order(b);
}
#if defined(F64) || defined(WITH_F64)
double f64_of_bits(uint64_t bits) { return packDouble2x32(unpackUint2x32(bits)); }
uint64_t bits_of(double x) { return packUint2x32(unpackDouble2x32(x)); }
bool is_nan(double x) { return (bits_of(x) & 0x7ffffffffffffffful) > 0x7ff0000000000000ul; }
double flushed(double x) { return x; }
int64_t order(double x) {
  int64_t bits = int64_t(bits_of(x));
  return bits >= 0 ? bits : -9223372036854775807l - 1l - bits;
}
bool less(double a, double b) {
  if (!MAY_FLUSH) return a < b;
  return !is_nan(a) && !is_nan(b) && order(a) < order(b);
}
bool equal(double a, double b) {
  if (!MAY_FLUSH) return a == b;
  return !is_nan(a) && !is_nan(b) && order(a) == order(b);
}
double chosen(bool holds, double a, double b) { return holds ? a : b; }
#endif
bool is_nan(int64_t x) { return false; }
int64_t flushed(int64_t x) { return x; }
bool less(int64_t a, int64_t b) { return a < b; }
bool equal(int64_t a, int64_t b) { return a == b; }
bool is_nan(int x) { return false; }
int flushed(int x) { return x; }
bool less(int a, int b) { return a < b; }
bool equal(int a, int b) { return a == b; }

// holds ? a : b, with both a and b computed.
float chosen(bool holds, float a, float b) { return holds ? a : b; }
int64_t chosen(bool holds, int64_t a, int64_t b) { return holds ? a : b; }
uint64_t chosen(bool holds, uint64_t a, uint64_t b) { return holds ? a : b; }
int chosen(bool holds, int a, int b) { return holds ? a : b; }
uint chosen(bool holds, uint a, uint b) { return holds ? a : b; }
uint8_t chosen(bool holds, uint8_t a, uint8_t b) { return holds ? a : b; }

// The value of an immediate operand.
#if defined(F32)
#define OF_BITS f32_of_bits
#elif defined(F64)
#define OF_BITS f64_of_bits
#else
#define OF_BITS T
#endif
