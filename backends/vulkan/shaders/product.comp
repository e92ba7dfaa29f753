// MATMUL and MATMUL_ADD. MODE 1: MATMUL_ADD.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "product.glsl"

REFERENCE(Element, T, SIZE)
#include "product_tile.glsl"

void finish(uint matrix, int64_t offset, uint row, uint column, T value[SIDE][SIDE]) {
  for (uint i = 0; i < SIDE; ++i)
    for (uint j = 0; j < SIDE; ++j) {
      if (row + i >= product.m || column + j >= product.n) continue;
      Element target = Element(address_of(0, offset, row + i, column + j, SIZE));
      target.v = flushed(product.accumulates != 0 ? flushed(target.v) + value[i][j] : value[i][j]);
    }
}
