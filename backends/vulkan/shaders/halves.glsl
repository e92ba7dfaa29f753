// Converts f16 by integers alone, so that rounding and denormal numbers do not depend on the driver.
float f32_of_f16(uint bits) {
  uint sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, significand = bits & 0x3ffu;
  if (exponent == 31u) return uintBitsToFloat(sign | 0x7f800000u | significand << 13);
  if (exponent != 0u) return uintBitsToFloat(sign | (exponent + 112u) << 23 | significand << 13);
  if (significand == 0u) return uintBitsToFloat(sign);
  int lead = findMSB(significand);
  return uintBitsToFloat(sign | uint(lead + 103) << 23 | (significand << uint(23 - lead) & 0x7fffffu));
}

// Rounds to nearest, ties to even.
uint f16_of_f32(float x) {
  uint bits = floatBitsToUint(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return sign | 0x7e00u;
  if (size >= 0x47800000u) return sign | 0x7c00u;  // 2^16
  int exponent = int(size >> 23) - 127;
  if (exponent < -25) return sign;
  uint drop = exponent < -14 ? uint(-1 - exponent) : 13u;
  uint significand = (size & 0x7fffffu) | 0x800000u;
  uint kept = significand >> drop, low = significand & ((1u << drop) - 1u), middle = 1u << (drop - 1u);
  if (low > middle || (low == middle && (kept & 1u) != 0u)) ++kept;
  return sign | (exponent < -14 ? kept : (uint(exponent + 14) << 10) + kept);  // a carry increments the exponent
}
