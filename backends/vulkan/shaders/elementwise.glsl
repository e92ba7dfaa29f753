// The elementwise ops on elements of the type T. The formulas are those of sdk/functions.hpp, which the backends in C++
// share. GLSL repeats them because it has no templates, its functions are less accurate than the contract allows, and its
// comparisons may flush denormal numbers.
#include "exact.glsl"
#include "functions.glsl"

#if defined(IS_FLOATING)
#if defined(F32)  // integer operations on the bits, which no device flushes or rearranges
float opposite(float x) { return uintBitsToFloat(floatBitsToUint(x) ^ 0x80000000u); }
float magnitude(float x) { return uintBitsToFloat(floatBitsToUint(x) & 0x7fffffffu); }
#else
double opposite(double x) { return -x; }
double magnitude(double x) { return abs(x); }
#endif
#else
T opposite(T x) { return T(0) - x; }  // integers wrap
T magnitude(T x) { return x < T(0) ? T(0) - x : x; }
#endif

// Ops that move, compare or change signs keep denormal numbers.
bool is_exact_move(const uint op) {
  switch (op) {
    case OP_NEG:
    case OP_ABS:
    case OP_SIGN:
    case OP_RELU:
    case OP_RELU_BACKWARD:
    case OP_MAXIMUM:
    case OP_MINIMUM: return true;
  }
  return false;
}

T moved(const uint op, const T a, const T b) {
  const T zero = T(0);
  switch (op) {
    case OP_NEG: return opposite(a);
    case OP_ABS: return magnitude(a);
    case OP_SIGN: return less(zero, a) ? T(1) : less(a, zero) ? opposite(T(1)) : a;
    case OP_RELU: return less(a, zero) ? zero : a;
    case OP_RELU_BACKWARD: return less(b, zero) || equal(b, zero) ? zero : a;  // grad, x
    case OP_MAXIMUM: return is_nan(a) ? a : is_nan(b) ? b : less(b, a) ? a : b;
    case OP_MINIMUM: return is_nan(a) ? a : is_nan(b) ? b : less(a, b) ? a : b;
  }
  return a;
}

#if defined(F32)
// Returns the exact remainder of a / b by a division of integers, 32 bits of the quotient at a time.
float remainder_of(float a, float b) {
  uint bits_a = floatBitsToUint(a), size_a = bits_a & 0x7fffffffu, size_b = floatBitsToUint(b) & 0x7fffffffu;
  if (size_a >= 0x7f800000u || size_b > 0x7f800000u || size_b == 0u) return NOT_A_NUMBER;
  if (size_a < size_b) return a;
  int exponent_a, exponent_b;
  uint m, n;
  split(size_a, exponent_a, m);
  split(size_b, exponent_b, n);
  uint64_t rest = uint64_t(m) % n;
  for (int left = exponent_a - exponent_b; left > 0 && rest != 0; left -= 32) rest = (rest << uint(min(left, 32))) % n;
  uint kept = uint(rest), sign = bits_a & 0x80000000u;
  if (kept == 0u) return uintBitsToFloat(sign);
  int lead = findMSB(kept), exponent = exponent_b - 23 + lead;
  if (exponent < -126) return uintBitsToFloat(sign | (exponent_b >= -126 ? kept << uint(exponent_b + 126) : kept >> uint(-126 - exponent_b)));
  return uintBitsToFloat(sign | uint(exponent + 127) << 23 | (kept << uint(23 - lead) & 0x7fffffu));
}

float gated(float x, float v) {  // x / (1 + e^-v)
  precise float e = exponential(-abs(v)), r = (v < 0.0 ? x * e : x) / (1.0 + e);
  return r;
}
float gated_slope(float x, float v, float slope) {  // the derivative of x s(v(x)): s + x s (1 - s) v'
  precise float e = exponential(-abs(v)), r = 1.0 / (1.0 + e);
  precise float sum = (v < 0.0 ? e : 1.0) * r + x * (e * r) * r * slope;
  return sum;
}
float gelu_angle(float x) {
  precise float u = 1.5957691216 * (x * (1.0 + 0.044715 * x * x));
  return u;
}
float function(const uint op, const float a, const float b) {
  precise float r = a;
  switch (op) {
    case OP_EXP: return exponential(a);
    case OP_LOG: return logarithm(a);
    case OP_TANH: return hyperbolic_tangent(a);
    case OP_SIGMOID: return logistic(a);
    case OP_ERF: return error_function(a);
    case OP_POW: return power(a, b);
    case OP_FMOD: return remainder_of(a, b);
    case OP_SILU: return gated(a, a);
    case OP_SILU_BACKWARD: r = a * gated_slope(b, b, 1.0); break;  // grad, x
    case OP_GELU:
      if (is_nan(a)) return a;
      r = a * normal_distribution(a);
      break;
    case OP_GELU_BACKWARD: {  // grad, x
      if (is_nan(b)) return b;
      precise float h = 0.5 * b * b;
      r = a * (normal_distribution(b) + b * (0.398942280 * exponential(-h)));
      break;
    }
    case OP_GELU_TANH: return gated(a, gelu_angle(a));
    case OP_GELU_TANH_BACKWARD: {
      if (is_nan(b)) return b;
      precise float x = clamp(b, -64.0, 64.0);  // beyond, the square may overflow, and e is 0
      precise float slope = 1.5957691216 * (1.0 + 0.134145 * x * x);
      r = a * gated_slope(b, gelu_angle(x), slope);
      break;
    }
  }
  return r;
}
#endif

#if !defined(IS_FLOATING)
// Returns whether `bits` is from 0 to the width of T less 1.
bool is_part(const T bits) { return bits >= T(0) && bits < T(8 * SIZE); }
#endif

T computed(const uint op, const T a, const T b) {
#if defined(IS_FLOATING)
  precise T r = a;
  switch (op) {
    case OP_ADD: r = a + b; break;
    case OP_SUB: r = a - b; break;
    case OP_MUL: r = a * b; break;
    case OP_DIV: r = exact_quotient(a, b); break;
    case OP_SQRT: r = exact_root(a); break;
    case OP_SIGMOID_BACKWARD: r = a * (b * (T(1) - b)); break;  // grad, y
    case OP_TANH_BACKWARD: r = a * (T(1) - b * b); break;
#if defined(F32)
    default: r = function(op, a, b); break;
#endif
  }
  return r;
#else
  switch (op) {
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_BITWISE_AND: return a & b;
    case OP_BITWISE_OR: return a | b;
    case OP_BITWISE_XOR: return a ^ b;
    case OP_BITWISE_LEFT_SHIFT: return is_part(b) ? a << b : T(0);
    case OP_BITWISE_RIGHT_SHIFT: return a >> (is_part(b) ? b : T(8 * SIZE - 1));
    case OP_QUOTIENT: return b == T(0) ? T(0) : b == T(-1) ? opposite(a) : a / b;
    case OP_FMOD: return b == T(0) || b == T(-1) ? T(0) : a - a / b * b;
  }
  return a;
#endif
}

T applied(const uint op, const T a, const T b) {
  return is_exact_move(op) ? moved(op, a, b) : flushed(computed(op, flushed(a), flushed(b)));
}
