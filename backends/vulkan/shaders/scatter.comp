// SCATTER_ADD. MODE 0: an invocation adds a line along the axis, so that the order of additions is fixed; operands out,
// index, source. MODE 1, for f32: an invocation adds an element, and the order is not fixed; operands source, index, out.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "grid.glsl"

REFERENCE(Element, T, SIZE)
REFERENCE(Index, int64_t, 8)

bool is_valid(int64_t index) {
  bool is_inside = index >= 0 && index < grid.axis_extent;
  if (!is_inside) report_index();
  return is_inside;
}

void add_line(uint i) {
  LOCATE(3)
  for (int64_t j = 0; j < grid.steps; ++j) {
    int64_t index = LOAD_AT(Index, 1, ADDRESS(1, 8) + uint64_t(j * grid.stride1 * 8), int64_t);
    if (!is_valid(index)) continue;
    T term = LOAD_AT(Element, 2, ADDRESS(2, SIZE) + uint64_t(j * grid.stride2 * SIZE), OF_BITS);
    Element target = Element(ADDRESS(0, SIZE) + uint64_t(index * grid.axis_stride * SIZE));
    precise T sum = flushed(target.v) + flushed(term);
    target.v = flushed(sum);
  }
}

void add_element(uint i) {
#if defined(F32)
  LOCATE(3)
  int64_t index = LOAD(Index, 1, 8, int64_t);
  if (!is_valid(index)) return;
  float term = flushed(LOAD(Element, 0, 4, OF_BITS));
  Word target = Word(ADDRESS(2, 4) + uint64_t(index * grid.axis_stride * 4));
  uint held = target.v;
  for (;;) {
    uint seen = atomicCompSwap(target.v, held, floatBitsToUint(flushed(flushed(uintBitsToFloat(held)) + term)));
    if (seen == held) break;
    held = seen;
  }
#endif
}

void main() {
  for (uint i = first_place(); i < grid.count; i += all_places()) {
    if (MODE == 0) add_line(i);
    else add_element(i);
  }
}
