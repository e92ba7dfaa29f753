// Elementwise ops whose operands have one dtype: F32, F64, I64, I32.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "grid.glsl"
#include "elementwise.glsl"

REFERENCE(Element, T, SIZE)

void main() {
  for (uint i = first_place(); i < grid.count; i += all_places()) {
    LOCATE(3)
    Element(ADDRESS(0, SIZE)).v = applied(OP, LOAD(Element, 1, SIZE, OF_BITS), LOAD(Element, 2, SIZE, OF_BITS));
  }
}
