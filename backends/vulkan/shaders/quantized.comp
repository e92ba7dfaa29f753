// QUANTIZED_MATMUL. MODE 0, for many rows of x: a product whose right operand is the transpose of the unpacked weight. MODE 2,
// for few rows: 32 invocations read the words of a row of the weight, and add up their products with all rows of x.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "product.glsl"
#include "quantized.glsl"

REFERENCE(Element, T, SIZE)

float weight_at(uint j, uint row) {
  uint bits = bits_of_code(), per = 32 / bits;
  vec2 affine = affine_of(row, j);
  return affine.x * float(bitfieldExtract(word_of(row, j / per), int(j % per * bits), int(bits))) + affine.y;
}
#define RIGHT_ELEMENT(offset, inner, column) weight_at(inner, column)
#define main multiply_tiles
#include "product_tile.glsl"
#undef main

void finish(uint matrix, int64_t offset, uint row, uint column, T value[SIDE][SIDE]) {
  for (uint i = 0; i < SIDE; ++i)
    for (uint j = 0; j < SIDE; ++j)
      if (row + i < product.m && column + j < product.n)
        Element(address_of(0, offset, row + i, column + j, SIZE)).v = flushed(value[i][j]);
}

const uint MOST = 4, LANES = 32, ROWS = GROUP / LANES;  // rows of x; invocations of a row of the weight
shared float shares[MOST][GROUP];

void add_word(uint row, uint i, inout float sums[MOST]) {
  uint bits = bits_of_code(), per = 32 / bits, word = word_of(row, i);
  vec2 affine = affine_of(row, i * per);
  for (uint j = 0; j < product.m; ++j) {
    float products = 0.0, sum = 0.0;
    for (uint c = 0; c < per; ++c) {
      float x = element(1, 0, j, i * per + c);
      products += float(bitfieldExtract(word, int(c * bits), int(bits))) * x;
      sum += x;
    }
    sums[j] += affine.x * products + affine.y * sum;
  }
}

void multiply_rows() {
  uint me = gl_LocalInvocationIndex, lane = me % LANES, words = product.k * bits_of_code() / 32;
  for (uint first = gl_WorkGroupID.x * ROWS; first < product.n; first += gl_NumWorkGroups.x * ROWS) {
    uint row = min(first + me / LANES, product.n - 1);
    float sums[MOST];
    for (uint j = 0; j < MOST; ++j) sums[j] = 0.0;
    for (uint i = lane; i < words; i += LANES) add_word(row, i, sums);
    for (uint j = 0; j < MOST; ++j) shares[j][me] = sums[j];
    barrier();
    for (uint reach = LANES / 2; reach > 0; reach >>= 1) {
      if (lane < reach)
        for (uint j = 0; j < product.m; ++j) shares[j][me] += shares[j][me + reach];
      barrier();
    }
    if (lane == 0 && first + me / LANES < product.n)
      for (uint j = 0; j < product.m; ++j) Element(address_of(0, 0, j, row, SIZE)).v = flushed(shares[j][me]);
    barrier();
  }
}

void main() {
  if (MODE == 2) multiply_rows();
  else multiply_tiles();
}
