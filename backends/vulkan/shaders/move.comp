// FILL, COPY and WHERE, of elements of SIZE bytes with the type WORD.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "words.glsl"
#include "grid.glsl"

REFERENCE(Bool, uint8_t, 1)

void main() {
  for (uint i = first_place(); i < grid.count; i += all_places()) {
    if (OP == OP_WHERE) {
      LOCATE(4)
      WORD a = LOAD(Element, 2, SIZE, WORD), b = LOAD(Element, 3, SIZE, WORD);
      Element(ADDRESS(0, SIZE)).v = LOAD(Bool, 1, 1, uint8_t) != uint8_t(0) ? a : b;
    } else {
      LOCATE(2)
      Element(ADDRESS(0, SIZE)).v = LOAD(Element, 1, SIZE, WORD);
    }
  }
}
