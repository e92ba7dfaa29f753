// MATMUL and MATMUL_ADD of f16 on the device's matrix units, by cooperative matrices. A workgroup computes a tile of
// 64 x 64; each of its subgroups computes some of the fragments of M x N. The sums are f32. MODE 1: MATMUL_ADD.
// Debian 12's glslc knows only the older extension of NVIDIA. The plugin rewrites the SPIR-V to VK_KHR_cooperative_matrix;
// it recognises the operands of a product by the specialisation constants of their shapes: M x K, K x N and M x N.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_NV_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#include "common.glsl"
#include "halves.glsl"
#include "product.glsl"

layout(constant_id = 7) const uint M = 16;
layout(constant_id = 8) const uint N = 16;
layout(constant_id = 9) const uint K = 16;
layout(constant_id = 10) const uint FRAGMENTS = 2;  // the fragments that a subgroup computes
REFERENCE(Half, uint16_t, 2)

const uint DEPTH = 32, ACROSS = TILE / N, ALL = TILE / M * ACROSS;  // fragments
const uint SUMS_FROM = 16;  // sums of DEPTH * SUMS_FROM products are added to a total, so that errors grow slowly
// Elements from one row to the next. The padding keeps rows aligned to 16 bytes and puts them into different banks.
const uint LEFT_ROW = DEPTH + 8, RIGHT_ROW = TILE + 8, RESULT_ROW = TILE + 4;
shared float16_t left[TILE * LEFT_ROW], right[DEPTH * RIGHT_ROW];
shared float results[TILE * RESULT_ROW];

// Fills left and right with the elements of a and b that have the inner indices `inner` .. inner + DEPTH - 1. Adjacent
// invocations read along the axis whose elements are adjacent. Elements outside the matrix are 0. Their address is clamped
// to that of the first element, because a device may read it.
void load(int64_t offset_a, int64_t offset_b, uint row, uint column, uint inner) {
  bool along_a = product.column[1] == 1, along_b = product.row[2] == 1;
  for (uint e = gl_LocalInvocationIndex; e < TILE * DEPTH; e += GROUP) {
    uint d = along_a ? e % DEPTH : e / TILE, q = along_a ? e / DEPTH : e % TILE;
    bool inside = row + q < product.m && inner + d < product.k;
    uint16_t found = Half(address_of(1, offset_a, inside ? row + q : 0, inside ? inner + d : 0, 2)).v;
    left[q * LEFT_ROW + d] = uint16BitsToHalf(inside ? found : uint16_t(0));
    d = along_b ? e % DEPTH : e / TILE;
    q = along_b ? e / DEPTH : e % TILE;
    inside = column + q < product.n && inner + d < product.k;
    found = Half(address_of(2, offset_b, inside ? inner + d : 0, inside ? column + q : 0, 2)).v;
    right[d * RIGHT_ROW + q] = uint16BitsToHalf(inside ? found : uint16_t(0));
  }
}

float half_at(uint operand, int64_t offset, uint row, uint column) {
  return f32_of_f16(uint(Half(address_of(operand, offset, row, column, 2)).v));
}

void store(int64_t offset[4], uint row, uint column) {
  for (uint e = gl_LocalInvocationIndex; e < TILE * TILE; e += GROUP) {
    uint y = e / TILE, x = e % TILE, r = row + y, c = column + x;
    if (r >= product.m || c >= product.n) continue;
    float value = results[y * RESULT_ROW + x];
    if (MODE == 1) value += half_at(3, offset[3], r, c);
    if (product.accumulates != 0) value += half_at(0, offset[0], r, c);
    Half(address_of(0, offset[0], r, c, 2)).v = uint16_t(f16_of_f32(value));
  }
}

// Fills `results` with FRAGMENTS fragments, from number `first` on.
void multiply(int64_t offset[4], uint row, uint column, uint first) {
  fcoopmatNV<32, gl_ScopeSubgroup, M, N> sum[FRAGMENTS], total[FRAGMENTS];
  for (uint i = 0; i < FRAGMENTS; ++i) {
    sum[i] = fcoopmatNV<32, gl_ScopeSubgroup, M, N>(0.0);
    total[i] = fcoopmatNV<32, gl_ScopeSubgroup, M, N>(0.0);
  }
  uint loads = 0;
  for (uint inner = 0; inner < product.k; inner += DEPTH) {
    load(offset[1], offset[2], row, column, inner);
    barrier();
    for (uint d = 0; d < DEPTH; d += K)
      for (uint i = 0; i < FRAGMENTS; ++i) {
        uint y = (first + i) / ACROSS * M, x = (first + i) % ACROSS * N;
        if (first + i >= ALL) break;
        fcoopmatNV<16, gl_ScopeSubgroup, M, K> a;
        fcoopmatNV<16, gl_ScopeSubgroup, K, N> b;
        coopMatLoadNV(a, left, y * LEFT_ROW + d, LEFT_ROW, false);
        coopMatLoadNV(b, right, d * RIGHT_ROW + x, RIGHT_ROW, false);
        sum[i] = coopMatMulAddNV(a, b, sum[i]);
      }
    barrier();
    if (++loads % SUMS_FROM == 0)
      for (uint i = 0; i < FRAGMENTS; ++i) {
        total[i] = total[i] + sum[i];
        sum[i] = fcoopmatNV<32, gl_ScopeSubgroup, M, N>(0.0);
      }
  }
  for (uint i = 0; i < FRAGMENTS; ++i) {
    uint y = (first + i) / ACROSS * M, x = (first + i) % ACROSS * N;
    if (first + i >= ALL) break;
    coopMatStoreNV(total[i] + sum[i], results, y * RESULT_ROW + x, RESULT_ROW, false);
  }
}

void compute(uint matrix, uint row, uint column) {
  int64_t offset[4];
  find_offsets(matrix, offset);
  // The loop runs once, unless the driver chose larger subgroups than it reported.
  for (uint from = 0; from < ALL; from += gl_NumSubgroups * FRAGMENTS)
    multiply(offset, row, column, from + gl_SubgroupID * FRAGMENTS);
  barrier();
  store(offset, row, column);
  barrier();
}

void main() {
  for (uint tile = gl_WorkGroupID.x; tile < product.tiles; tile += gl_NumWorkGroups.x) {
    uint matrix = tile / product.tiles_of_one, inside = tile - matrix * product.tiles_of_one;
    compute(matrix, inside / product.tiles_across * TILE, inside % product.tiles_across * TILE);
  }
}
