// The template of fusions (sdk/fusion.h) that begin with a product of f32. fusion_module.cpp finds functions by their names
// here, and replaces the body of `body` by calls of a fusion. The parameters are those of the product, then those of the
// space. MODE 1: the product is a MATMUL_ADD.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "elementwise.glsl"
#include "product.glsl"
#include "space.glsl"
#define space Space(uint64_t(product) + SIZE_OF_PRODUCT)
#include "fusion.glsl"
#include "product_tile.glsl"

float product_here;
float head_result() { return product_here; }

// Calls all functions, as in fusion.comp. The calls of a fusion replace these calls.
#define CALL(name) store_f32(0, op_##name(a, b));
void body() {
  float a = load_f32(0), b = head_result();
  bool c = load_bool(0);
  FUNCTIONS(CALL)
  store_bool(0, op_EQ(a, b) || op_NE(a, b) || op_LT(a, b) || op_LE(a, b));
  store_f32(0, op_WHERE(c, a, op_CAST(c)));
}

// Only the copy is read at a changing place, so that the sums stay in registers.
void finish(uint matrix, int64_t, uint row, uint column, float value[SIDE][SIDE]) {
  float copied[SIDE * SIDE];
  for (uint i = 0; i < SIDE; ++i)
    for (uint j = 0; j < SIDE; ++j) copied[i * SIDE + j] = flushed(value[i][j]);
  [[dont_unroll]] for (uint e = 0; e < SIDE * SIDE; ++e) {
    uint r = row + e / SIDE, c = column + e % SIDE;
    if (r >= product.m || c >= product.n) continue;
    product_here = copied[e];
    locate((matrix * product.m + r) * product.n + c);
    body();
  }
}
