// Convolutions by pixels: the channels of a position, which are contiguous in images with channels last. Vectors hold rows
// of the weights. Other images are copied to pixels first, and results for them are transposed.
#pragma once
#include <backends/cpu/operand.hpp>
#include <backends/cpu/product.hpp>

namespace plugrad::cpu {

// Results at some positions, for a panel of rows:
//   out[p, row] = bias[row] + sum over taps t and channels c of pixels[t][p][first + c] weights[t, c, row], in this order.
// Depthwise, a row reads its own channel alone:
//   out[p, row] = bias[row] + sum over taps t of pixels[t][p][first + row] weights[t, row].
template <class T> struct PixelSums {
  const T* const* pixels;  // of a tap's positions, then of the next tap's
  int64_t tap_step;        // pixels between taps
  int64_t positions, first;
  int64_t taps, channels;
  const T* weights;  // of a product: `columns` elements
  int64_t columns;   // whole vectors
  const T* bias;     // `columns` elements, or null
  bool adds;         // the sums are added to the contents of out; otherwise to the bias
  T* out;
  int64_t out_step;  // elements between positions
  int64_t rows;      // how many columns are stored
  int64_t readable;  // depthwise: how many columns have a channel
  bool fetches;      // whether the memory behind the weights holds weights that are needed next, and far away
};

// The kernels of one instruction set.
template <class T> struct PixelKernels {
  int64_t columns;  // the most of a panel
  void (*sum)(const PixelSums<T>& s);
  void (*sum_depthwise)(const PixelSums<T>& s);
  void (*copy)(int64_t rows, int64_t columns, Matrix<const T> from, T* to, int64_t to_row);  // to contiguous rows
};

// The kernels of a Highway target.
template <int64_t target, class T> const PixelKernels<T>& pixel_kernels();

// Whether all operands are dense: planes need that.
bool is_dense(const Call& call);
// Whether to compute this convolution by pixels. It depends on the operands' shapes and layouts alone.
template <class T> bool is_better_by_pixels(const Call& call);
// Whether to keep packed weights for it, if the weights stay the same.
template <class T> bool gains_from_packing(const Call& call);
// packed: input 1 is packed weights, which only run_by_pixels and pack_weights know.
template <class T> void run_by_pixels(const Call& call, const PixelKernels<T>& kernels, bool packed = false);
// columns: the most of a panel
template <class T> uint64_t pixels_workspace(const Call& call, int64_t columns, bool packed = false);
template <class T>
uint64_t packed_weights_bytes(const plugrad_view& weight, const plugrad_convolution& given, int64_t columns);
// Packs the weights, input 0, with the attributes of their convolution.
template <class T> void pack_weights(const Call& call, const PixelKernels<T>& kernels);

}  // namespace plugrad::cpu
