// UNIFORM and NORMAL in f32, by Philox 4x32-10 (sdk/ops.md). Operands: out, seed, offset. value[3] is the row-major index of
// the first element.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "grid.glsl"
#include "exact.glsl"
#include "functions.glsl"

REFERENCE(Element, float, 4)
REFERENCE(Index, int64_t, 8)

uvec4 philox(uint64_t counter, uint64_t seed) {
  uvec4 x = uvec4(uint(counter), uint(counter >> 32), 0, 0);
  uvec2 key = uvec2(uint(seed), uint(seed >> 32));
  for (int round = 0; round < 10; ++round) {
    uint high0, low0, high1, low1;
    umulExtended(0xD2511F53u, x.x, high0, low0);
    umulExtended(0xCD9E8D57u, x.z, high1, low1);
    x = uvec4(high1 ^ x.y ^ key.x, low1, high0 ^ x.w ^ key.y, low0);
    key += uvec2(0x9E3779B9u, 0xBB67AE85u);
  }
  return x;
}

float uniform_of(uint word) { return float(word >> 8) * 5.9604644775390625e-8; }

// Returns the sine or cosine of 2 pi v for v in [0, 1). The reduction of v to an eighth of a turn is exact. The coefficients
// are those of Cephes.
float wave(float v, bool is_sine) {
  precise float turn = v * 4.0, quarter = floor(turn + 0.5), angle = (turn - quarter) * 1.57079632679, z = angle * angle, y;
  uint place = (uint(quarter) + (is_sine ? 0u : 1u)) & 3u;
  if ((place & 1u) == 0u) {
    y = -1.9515295891e-4;
    y = y * z + 8.3321608736e-3;
    y = y * z - 1.6666654611e-1;
    y = y * z * angle + angle;
  } else {
    y = 2.443315711809948e-5;
    y = y * z - 1.388731625493765e-3;
    y = y * z + 4.166664568298827e-2;
    y = y * z * z - 0.5 * z + 1.0;
  }
  return place >= 2u ? -y : y;
}

void main() {
  for (uint i = first_place(); i < grid.count; i += all_places()) {
    LOCATE(1)
    uint64_t seed = uint64_t(LOAD_AT(Index, 1, grid.base[1], int64_t));
    uint64_t offset = uint64_t(LOAD_AT(Index, 2, grid.base[2], int64_t));
    uint64_t element = grid.value[3] + i;
    uvec4 words = philox(offset + element / 4, seed);
    float drawn;
    if (OP == OP_UNIFORM) {
      drawn = uniform_of(words[uint(element & 3)]);
    } else {
      uint pair = uint(element & 2);
      precise float size = exact_root(-2.0 * logarithm(1.0 - uniform_of(words[pair])));
      drawn = size * wave(uniform_of(words[pair + 1]), (element & 1) != 0);
    }
    Element(ADDRESS(0, 4)).v = drawn;
  }
}
