// Copies of two-dimensional pieces between any strides: how operands without contiguous rows reach the kernels.
#pragma once
#include <cstdint>

namespace plugrad::cpu {

struct Tile {
  char* data;
  int64_t row, column;  // bytes between rows, and between columns
};

// to[r, c] = from[r, c] for all r below rows, c below columns; elements of 1, 4 or 8 bytes.
void copy_tile(Tile to, Tile from, int64_t rows, int64_t columns, int size);

}  // namespace plugrad::cpu
