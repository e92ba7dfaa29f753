// Reductions in any layout: a kind provides folds of contiguous rows and columns; this walks the operands and splits work.
#pragma once
#include <backends/cpu/operand.hpp>

namespace plugrad::cpu {

inline constexpr int kMaxPartial = 16;
inline constexpr int64_t kPanel = 128;  // columns folded at once

// The intermediate state of an output is a partial of `partial` bytes.
struct Reduction {
  int size;     // bytes of an input element
  int partial;  // at most kMaxPartial
  void (*init)(char* partials, int64_t n);
  void (*row)(char* partial, const char* p, int64_t n);  // folds n contiguous elements
  // Folds row after row of n contiguous elements, `stride` bytes apart, into n partials.
  void (*columns)(char* partials, const char* p, int64_t rows, int64_t stride, int64_t n);
  void (*merge)(char* partials, const char* others, int64_t n);
  void (*store)(char* out, const char* partial, bool accumulate);
  // Folds each of `rows` rows of n contiguous elements into an output. The steps are in bytes. Null: the functions above
  // serve.
  void (*each_row)(char* out, int64_t out_step, const char* p, int64_t row_step, int64_t rows, int64_t n,
                   bool accumulate) = nullptr;
  // For fusions: they fold computed values, with the same bits as the folds above. Null: fusions do not have this fold.
  // `row` is the same as `block` and `take` for each `block_length` elements, and `columns` as `add_rows` and `take` for
  // each kBlockRows rows.
  int64_t block_length = 0;
  void (*block)(char* element, const char* p, int64_t n) = nullptr;  // n up to block_length, to one element
  void (*start)(char* elements, int64_t n) = nullptr;                // the n first elements for add_rows
  void (*add_rows)(char* elements, const char* p, int64_t rows, int64_t stride, int64_t n) = nullptr;
  void (*take)(char* partials, const char* elements, int64_t n) = nullptr;  // each of n partials takes an element
};

// The division of a fold of few elements over many rows, or of one long row: each chunk of blocks gives a partial, and
// partials are merged in order. The division depends on shapes alone.
inline constexpr int64_t kBlockRows = 32;
// The pieces of kPiece elements of each chunk of a row; 0: the row is one chunk.
int64_t pieces_of_chunk(int64_t n);
inline constexpr int64_t kPiece = 32768;  // the most elements of a row folded in one call
// The rows of each chunk of a dense matrix, to fold to one row; 0: the matrix is one chunk.
int64_t rows_of_chunk(int64_t rows, int64_t columns);

constexpr KernelRow of_kind(KernelRow row, const Reduction& kind) {
  row.own = &kind;
  return row;
}

// One class of the input's dimensions, without extents of 1; strides in bytes.
struct Axes {
  int rank = 0;
  int64_t shape[PLUGRAD_MAX_RANK], in[PLUGRAD_MAX_RANK], out[PLUGRAD_MAX_RANK];

  void append(int64_t extent, int64_t in_step, int64_t out_step);
  void swap(int a, int b);
  void sort();   // by the input's strides, descending
  void merge();  // neighbours, if they are one dimension of both
  int64_t count() const;
  // Returns the position of a row-major index over the first `dims` dimensions.
  int64_t offset_in(int64_t index, int dims) const { return offset(in, index, dims); }
  int64_t offset_out(int64_t index, int dims) const { return offset(out, index, dims); }

 private:
  int64_t offset(const int64_t* strides, int64_t index, int dims) const;
};

// Splits the input's dimensions into the output's dimensions and the folded dimensions. in and out point to the first
// elements; with `any_order` they may be moved, so that strides are not negative.
void split_axes(const plugrad_view& in_view, const plugrad_view& out_view, bool any_order, Axes& kept, Axes& folded,
                const char*& in, char*& out);

void run_reduction(const Reduction& kind, const Call& call);

}  // namespace plugrad::cpu
