// The parameters of shaders, as the shaders declare them: grid.glsl, reduce.comp, product.glsl, lines.glsl,
// fusion.comp, attention.comp.
#pragma once
#include <cstdint>

namespace plugrad::vulkan {

struct Grid {
  uint32_t count, rank;
  uint32_t divisor[8], magic[8], shift[8];
  int32_t stride[7][8];
  uint64_t base[7], value[7];
  int64_t axis_extent, axis_stride, steps, stride1, stride2;
  uint64_t failed;
  uint32_t ordinal, flags;
  float number[8];
};
static_assert(sizeof(Grid) == 8 + 96 + 224 + 112 + 40 + 8 + 8 + 32);

struct Space {
  uint32_t count, rank, zero, pass;
  uint32_t divisor[8], magic[8], shift[8];
  int32_t stride[32][8];
  uint64_t base[32], value[32];
  uint64_t partials;
  uint32_t rows, row, span, chunks, reductions, unused;
  uint32_t op[8];
};
static_assert(sizeof(Space) == 16 + 96 + 1024 + 512 + 8 + 24 + 32);

struct Fold {
  uint64_t to, from, partials, places;
  uint32_t kept, reduced, kept_rank, reduced_rank, accumulates, span, chunks, unused;
  uint32_t kept_extent[8], reduced_extent[8];
  int64_t kept_to[8], kept_from[8], reduced_from[8];
};
static_assert(sizeof(Fold) == 32 + 32 + 64 + 192);

struct Product {
  uint64_t base[4];
  uint32_t m, n, k, accumulates, tiles_across, tiles_of_one, tiles, batch_rank;
  uint32_t batch_extent[8];
  int64_t batch[4][8], row[4], column[4];
};
static_assert(sizeof(Product) == 32 + 32 + 32 + 256 + 64);

struct Lines {
  uint64_t base[6];
  uint32_t lines, extent, rank, unused;
  uint32_t outer[8];
  int64_t stride[6][8], along[6];
  uint64_t failed;
  uint32_t ordinal;
  float epsilon;
};
static_assert(sizeof(Lines) == 48 + 16 + 32 + 384 + 48 + 16);

struct Attention {
  uint64_t base[10], products;
  uint32_t l, s, e, v, causal, across, tiles_of_one, tiles, rank, members;
  uint32_t extent[8];
  int64_t batch[10][8];
  int32_t row[10], column[10];
  float scale, number;
  uint32_t has_mask;
};
static_assert(sizeof(Attention) == 88 + 40 + 32 + 640 + 80 + 16);

}  // namespace plugrad::vulkan
