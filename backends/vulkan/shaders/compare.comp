// EQ, NE, LT and LE: out is bool.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "grid.glsl"

REFERENCE(Element, T, SIZE)
REFERENCE(Bool, uint8_t, 1)
#if defined(U8)
bool less(uint8_t a, uint8_t b) { return a < b; }
bool equal(uint8_t a, uint8_t b) { return a == b; }
#endif

void main() {
  for (uint i = first_place(); i < grid.count; i += all_places()) {
    LOCATE(3)
    T a = LOAD(Element, 1, SIZE, OF_BITS), b = LOAD(Element, 2, SIZE, OF_BITS);
    bool holds = OP == OP_EQ ? equal(a, b) : OP == OP_NE ? !equal(a, b) : less(a, b) || (OP == OP_LE && equal(a, b));
    Bool(ADDRESS(0, 1)).v = uint8_t(holds);
  }
}
