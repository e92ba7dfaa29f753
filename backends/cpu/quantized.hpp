// Products with a weight of 2, 4 or 8 bits an element: few rows are multiplied by codes as they are read, and many rows by
// tiles of the weight in f32. The plan cuts the product into rows and tiles for the kernels of one instruction set.
#pragma once
#include <backends/cpu/product.hpp>

namespace plugrad::cpu {

// Rows of the weight, with their scales in f32. A vector may be read from the last scale on.
struct QuantizedRows {
  const uint8_t* codes;
  const float *scales, *minima;
  int64_t count, bytes, groups;  // rows; bytes of codes and groups of a row
};

// How a row's words of 32 bits meet its groups. A block is one vector of words.
struct WordGroups {
  int64_t words, blocks;        // of a row
  const int32_t* first;         // the first group of each block
  const int32_t* spread;        // the group of each lane, counted from its block's first; those of the last block; or null
  const int32_t* of_each_word;  // if spread is null: the group of each word of the row, in whole blocks
};

// The most rows of x that are multiplied by codes at a time: with more, the sums leave no registers.
inline constexpr int64_t kMostVectors = 4;

struct QuantizedKernels {
  int64_t lanes;
  // Copies k elements of x to blocks of 32 / bits vectors and a vector of sums: vector i has the elements that meet code i
  // of each word, divided by the place value of the code in the word, but for the last. Zeros follow the last element.
  void (*arrange)(const float* x, int64_t k, int64_t bits, float* blocks);
  // Writes the products of the rows and up to kMostVectors arranged vectors, `stride` floats apart: product (r, j) at
  // out[j * out_step + r].
  void (*multiply)(const QuantizedRows& rows, const WordGroups& groups, int64_t bits, const float* blocks, int64_t stride,
                   int64_t vectors, float* out, int64_t out_step);
  // Writes the elements first .. first + count - 1 of each row, multiples of 8, with groups of this many elements.
  void (*unpack)(const QuantizedRows& rows, int64_t bits, int64_t group, int64_t first, int64_t count, float* out);
  // Converts the scales of rows, f16 or f32, to scales and minima.
  void (*convert)(const plugrad_view& scales, int64_t bits, int64_t row, int64_t rows, float* to, float* minima);
};

template <class T>
void run_quantized(const Call& call, const QuantizedKernels& kernels, const ProductKernels<float>& products);
// lanes: of a vector of f32.
template <class T> uint64_t quantized_workspace(const Call& call, int64_t lanes);

}  // namespace plugrad::cpu
