// Products of bf16 matrices by the processor's instructions for them, summed in f32 and rounded once.
#pragma once
#include <backends/cpu/product.hpp>
#include <plugrad/sdk/halves.hpp>

namespace plugrad::cpu {

// The instructions work on blocks of 32 x 32 elements of the output, from operands packed in tiles of 16 x 32 elements: in
// a left tile are 16 rows, in a right tile 16 pairs of k of 16 columns each. Zeros fill incomplete tiles.
inline constexpr int64_t kTile = 16, kTileDepth = 32, kTileSize = kTile * kTileDepth, kBlock = 2 * kTile;

// Up to 32 rows of a left operand. The steps between rows, tiles of depth and tiles of rows are in elements.
struct LeftTiles {
  const BFloat16* data;
  int64_t row, step, tile;
};

// A block of sums, whole even where the output has fewer rows and columns.
struct SumBlock {
  float* data;
  int64_t row;  // elements between rows
};

// The lines of memory that the caller writes next: `each` lines are fetched for each tile of depth.
struct Lines {
  const BFloat16* data;
  int64_t row, each;  // elements between lines
};

// Kernels of one instruction set; they work on the calling thread.
struct Bf16Kernels {
  // Stores in c, or adds to it, the products of `steps` tiles; tiles of right columns are b_tile elements apart. There are
  // versions for up to 16 and up to 32 rows, and columns.
  using Multiply = void (*)(int64_t steps, LeftTiles a, const BFloat16* b, int64_t b_tile, SumBlock c, bool add,
                            Lines ahead);
  Multiply multiply[2][2];
  // Packs up to 16 rows of the left operand, or columns of the right operand, of k elements each. `row` of x is the step
  // between the packed rows or columns, `column` the step along k.
  void (*pack_left)(int64_t rows, int64_t k, Matrix<const BFloat16> x, BFloat16* to);
  void (*pack_right)(int64_t columns, int64_t k, Matrix<const BFloat16> x, BFloat16* to);
  // Rounds a block's sums into the output, or adds the output to them first.
  void (*round)(int64_t rows, int64_t columns, SumBlock c, Matrix<BFloat16> out, bool add);
  // Run on each thread before its first product and after its last product. `state` belongs to the caller.
  void (*begin)(char (&state)[64]);
  void (*end)(const char (&state)[64]);
};

// The kernels for AMX's tiles and for AVX-512's dot products of pairs; null on machines of other architectures.
const Bf16Kernels* tile_kernels();
const Bf16Kernels* pair_kernels();

}  // namespace plugrad::cpu
