// IOTA: out[i] = start + i * step. value[1] and value[2] hold start and step in 8 bytes; value[3] holds the index of the
// first element. F32 computes in double with WITH_F64, and in pairs of floats without it: number[0 .. 3] hold start and step
// as pairs.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "grid.glsl"
#include "functions.glsl"

REFERENCE(Element, T, SIZE)

T element(uint64_t i) {
#if defined(F64) || (defined(F32) && defined(WITH_F64))
  precise double run = double(int64_t(i)) * f64_of_bits(grid.value[2]);
  precise double sum = f64_of_bits(grid.value[1]) + run;
  return T(sum);
#elif defined(F32)
  float high = float(uint(i >> 12)) * 4096.0, low = float(uint(i & 4095));  // their sum is i, exactly
  vec2 a = pair_of_product(high, grid.number[2]), b = pair_of_product(low, grid.number[2]);
  vec2 run = pair_of_sum(a.x, b.x), sum = pair_of_sum(grid.number[0], run.x);
  precise float rest = a.y + b.y + run.y + sum.y + grid.number[1] + (high + low) * grid.number[3];
  return sum.x + rest;
#else
  return T(int64_t(grid.value[1]) + int64_t(i) * int64_t(grid.value[2]));
#endif
}

void main() {
  for (uint i = first_place(); i < grid.count; i += all_places()) {
    LOCATE(1)
    Element(ADDRESS(0, SIZE)).v = element(grid.value[3] + i);
  }
}
