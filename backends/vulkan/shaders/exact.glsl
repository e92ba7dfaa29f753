// Division and square root that are correct to the last bit if the device's own results err by a few units in the last
// place, even if the device flushes denormal numbers. An approximate result is corrected by its remainder, computed in
// integers.
float near_quotient(float a, float b) { return (EMULATED & 2u) != 0u ? a * (1.0 / b) : a / b; }
float near_root(float x) { return (EMULATED & 2u) != 0u ? x * inversesqrt(x) : sqrt(x); }

// Rounds quotient * 2^(exponent - 25). quotient has 26 bits; `rest` is true if the exact number has further bits below.
float rounded(uint sign, int exponent, uint quotient, bool rest) {
  if (exponent > 127) return uintBitsToFloat(sign | 0x7f800000u);
  int drop = exponent < -126 ? min(2 + (-126 - exponent), 31) : 2;
  uint kept = quotient >> uint(drop), low = quotient & ((1u << uint(drop)) - 1u), middle = 1u << uint(drop - 1);
  if (low > middle || (low == middle && (rest || (kept & 1u) != 0u))) ++kept;
  uint bits = exponent < -126 ? kept : (uint(exponent + 126) << 23) + kept;  // a carry increments the exponent
  return uintBitsToFloat(sign | bits);
}

// Splits the bits of a finite positive number into its exponent and a significand of 24 bits.
void split(uint bits, out int exponent, out uint significand) {
  exponent = int(bits >> 23 & 0xffu);
  significand = bits & 0x7fffffu;
  if (exponent == 0) {
    int shift = 23 - findMSB(significand);
    significand <<= uint(shift);
    exponent = 1 - shift;
  } else {
    significand |= 0x800000u;
  }
  exponent -= 127;
}

float divided(float a, float b) {
  uint bits_a = floatBitsToUint(a), bits_b = floatBitsToUint(b), sign = (bits_a ^ bits_b) & 0x80000000u;
  uint size_a = bits_a & 0x7fffffffu, size_b = bits_b & 0x7fffffffu;
  const uint infinite = 0x7f800000u;
  if (size_a > infinite || size_b > infinite || (size_a == 0u && size_b == 0u) ||
      (size_a == infinite && size_b == infinite))
    return uintBitsToFloat(0x7fc00000u);
  if (size_a == infinite || size_b == 0u) return uintBitsToFloat(sign | infinite);
  if (size_b == infinite || size_a == 0u) return uintBitsToFloat(sign);
  int exponent_a, exponent_b;
  uint m, n;
  split(size_a, exponent_a, m);
  split(size_b, exponent_b, n);
  int exponent = exponent_a - exponent_b;
  if (m < n) {
    m <<= 1;
    --exponent;
  }
  precise float divisor = float(n), near = near_quotient(float(m), divisor) * 33554432.0;
  uint quotient = uint(near);
  int64_t rest = (int64_t(m) << 25) - int64_t(quotient) * int64_t(n);
  int step = int(floor(float(rest) / divisor));
  quotient += uint(step);
  rest -= int64_t(step) * int64_t(n);
  if (rest < 0) {
    --quotient;
    rest += int64_t(n);
  }
  if (rest >= int64_t(n)) {
    ++quotient;
    rest -= int64_t(n);
  }
  return rounded(sign, exponent, quotient, rest != 0);
}

float root(float x) {
  uint bits = floatBitsToUint(x);
  if ((bits << 1) == 0u || bits == 0x7f800000u) return x;
  if (bits > 0x7f800000u) return uintBitsToFloat(0x7fc00000u);
  int exponent;
  uint m;
  split(bits, exponent, m);
  if ((exponent & 1) != 0) {
    m <<= 1;
    --exponent;
  }
  int64_t square = int64_t(m) << 27;  // its root has 26 bits
  precise float near = near_root(float(m)) * 11585.2375;
  int64_t r = int64_t(near), rest = square - r * r;
  r += int64_t(floor(float(rest) / (2.0 * near)));
  rest = square - r * r;
  for (int i = 0; i < 2; ++i)
    if (rest < 0) {
      --r;
      rest = square - r * r;
    }
  for (int i = 0; i < 2; ++i)
    if (rest > 2 * r) {
      ++r;
      rest = square - r * r;
    }
  return rounded(0u, exponent / 2, uint(r), rest != 0);
}

float exact_quotient(float a, float b) { return CORRECTED ? divided(a, b) : a / b; }
float exact_root(float x) { return CORRECTED ? root(x) : sqrt(x); }
#if defined(F64)
double exact_quotient(double a, double b) { return a / b; }
double exact_root(double x) { return sqrt(x); }
#endif
