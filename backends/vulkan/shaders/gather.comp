// GATHER of elements of SIZE bytes. Operands: out, index, x. axis_stride is the stride of x along the axis.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "words.glsl"
#include "grid.glsl"

REFERENCE(Index, int64_t, 8)

void main() {
  for (uint i = first_place(); i < grid.count; i += all_places()) {
    LOCATE(3)
    int64_t index = LOAD(Index, 1, 8, int64_t);
    bool is_valid = index >= 0 && index < grid.axis_extent;
    if (!is_valid) report_index();
    int64_t place = is_valid ? index * grid.axis_stride : 0;  // a device may execute both branches of a condition
    WORD found = Element(ADDRESS(2, SIZE) + uint64_t(place * SIZE)).v;
    if (is_valid) Element(ADDRESS(0, SIZE)).v = found;
  }
}
