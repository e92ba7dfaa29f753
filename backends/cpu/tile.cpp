#include <backends/cpu/tile.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace plugrad::cpu {
namespace {

typedef uint32_t V4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint64_t V2 __attribute__((vector_size(16), aligned(8), may_alias));

// `to` has contiguous rows, `from` has contiguous columns: blocks of 4 x 4 in registers.
void transpose(Tile to, Tile from, int64_t rows, int64_t columns, uint32_t) {
  for (int64_t c = 0; c + 4 <= columns; c += 4)
    for (int64_t r = 0; r + 4 <= rows; r += 4) {
      const auto load = [&](int i) { return *reinterpret_cast<const V4*>(from.data + (c + i) * from.column + r * 4); };
      const auto store = [&](int i, V4 v) { *reinterpret_cast<V4*>(to.data + (r + i) * to.row + c * 4) = v; };
      const V4 a = load(0), b = load(1), d = load(2), e = load(3);
      const V4 ad_low = __builtin_shufflevector(a, d, 0, 4, 1, 5), ad_high = __builtin_shufflevector(a, d, 2, 6, 3, 7);
      const V4 be_low = __builtin_shufflevector(b, e, 0, 4, 1, 5), be_high = __builtin_shufflevector(b, e, 2, 6, 3, 7);
      store(0, __builtin_shufflevector(ad_low, be_low, 0, 4, 1, 5));
      store(1, __builtin_shufflevector(ad_low, be_low, 2, 6, 3, 7));
      store(2, __builtin_shufflevector(ad_high, be_high, 0, 4, 1, 5));
      store(3, __builtin_shufflevector(ad_high, be_high, 2, 6, 3, 7));
    }
}

void transpose(Tile to, Tile from, int64_t rows, int64_t columns, uint64_t) {
  for (int64_t c = 0; c + 2 <= columns; c += 2)
    for (int64_t r = 0; r + 2 <= rows; r += 2) {
      const V2 a = *reinterpret_cast<const V2*>(from.data + c * from.column + r * 8);
      const V2 b = *reinterpret_cast<const V2*>(from.data + (c + 1) * from.column + r * 8);
      *reinterpret_cast<V2*>(to.data + r * to.row + c * 8) = __builtin_shufflevector(a, b, 0, 2);
      *reinterpret_cast<V2*>(to.data + (r + 1) * to.row + c * 8) = __builtin_shufflevector(a, b, 1, 3);
    }
}

template <class T> T read(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
template <class T> void write(char* p, T value) { std::memcpy(p, &value, sizeof value); }

template <class T> void strided(Tile to, Tile from, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r, to.data += to.row, from.data += from.row) {
    if (to.column == sizeof(T) && from.column == 0) {
      const T value = read<T>(from.data);
      for (int64_t c = 0; c < columns; ++c) write<T>(to.data + c * static_cast<int64_t>(sizeof(T)), value);
      continue;
    }
    for (int64_t c = 0; c < columns; ++c) write<T>(to.data + c * to.column, read<T>(from.data + c * from.column));
  }
}

// Repeats one row in adjacent rows.
void repeat(char* to, const char* row, int64_t bytes, int64_t rows) {
  std::memcpy(to, row, static_cast<size_t>(bytes));
  for (int64_t done = bytes, all = bytes * rows; done < all; done *= 2)
    std::memcpy(to + done, to, static_cast<size_t>(std::min(done, all - done)));
}

template <class T> void copy(Tile to, Tile from, int64_t rows, int64_t columns) {
  constexpr int64_t kSize = sizeof(T), kBlock = 16 / kSize;
  if (to.row == kSize && to.column != kSize) {
    std::swap(rows, columns);
    std::swap(to.row, to.column);
    std::swap(from.row, from.column);
  }
  if (to.column == kSize && from.column == kSize) {
    if (from.row == 0 && to.row == columns * kSize) return repeat(to.data, from.data, to.row, rows);
    for (int64_t r = 0; r < rows; ++r) std::memcpy(to.data + r * to.row, from.data + r * from.row, columns * kSize);
    return;
  }
  if constexpr (kSize >= 4) {
    if (to.column == kSize && from.row == kSize && rows >= kBlock && columns >= kBlock) {
      transpose(to, from, rows, columns, T());
      const int64_t r = rows / kBlock * kBlock, c = columns / kBlock * kBlock;
      if (r < rows)
        strided<T>({to.data + r * to.row, to.row, to.column}, {from.data + r * from.row, from.row, from.column}, rows - r,
                   columns);
      if (c < columns)
        strided<T>({to.data + c * to.column, to.row, to.column}, {from.data + c * from.column, from.row, from.column}, r,
                   columns - c);
      return;
    }
  }
  strided<T>(to, from, rows, columns);
}

}  // namespace

void copy_tile(Tile to, Tile from, int64_t rows, int64_t columns, int size) {
  if (size == 4) copy<uint32_t>(to, from, rows, columns);
  else if (size == 8) copy<uint64_t>(to, from, rows, columns);
  else if (size == 2) copy<uint16_t>(to, from, rows, columns);
  else copy<uint8_t>(to, from, rows, columns);
}

}  // namespace plugrad::cpu
