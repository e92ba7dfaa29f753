// Convolutions: the plan copies the source to planes and cuts the result into pieces for the kernels of convolutions.cpp.
#pragma once
#include <backends/cpu/operand.hpp>
#include <backends/cpu/planes.hpp>
#include <backends/cpu/product.hpp>

namespace plugrad::cpu {

// The weights' rows, multiplied by a kernel at a time.
inline constexpr int64_t kStripRows = 6;
// The most elements of a panel of positions, of any kernel.
template <class T> inline constexpr int64_t kPanelElements = 512 / static_cast<int64_t>(sizeof(T));
inline constexpr int kPanels = 4;  // panels for each block of weights
// The most rows with results side by side in vectors: a multiple of the rows computed by any kernel at a time.
template <class T> inline constexpr int64_t kRowPanel = 256 / static_cast<int64_t>(sizeof(T));

// Divides a number of rows into strips of nearly equal height.
struct EqualStrips {
  int64_t rows;
  int64_t count() const { return (rows + kStripRows - 1) / kStripRows; }
  int64_t begin(int64_t strip) const { return strip * rows / count(); }
};

// Results at lines of positions in planes:
// out[row, position] = bias[row] + sum_i weights[row, i] planes[position + distance[i]].
template <class T> struct Correlation {
  int64_t rows, depth;
  const int64_t* block_ends;  // the sum of a block of products is added to the total; the last block ends at depth
  const T* weights;           // in strips of EqualStrips, product by product; or `width` elements for each product
  int64_t width;              // for correlate_rows: the rows and the padding of the last vector
  const int64_t* distances;   // depth
  const T* bias;              // rows, or width; or null
  const T* planes;
  int64_t images, image_step, lines, line_step, columns;  // the positions: images of lines of columns
  T* out;
  int64_t out_row, out_image, out_line, out_column;  // steps in elements
  T* sums;                                           // room for rows times kPanels panels; or for width times all positions
};

// The gradient of weights by positions of one image: sums[i, o] += sum_p planes[place[p] + distance[i]] grad[p, o].
template <class T> struct WeightGradient {
  int64_t depth, rows, positions;  // i, o (a multiple of the vectors' lanes), p
  const T* planes;
  const int64_t *distances, *places;
  const T* grad;
  T* sums;
};

// The same for few rows: sums[o, i] += sum_p planes[place of p + distance[i]] grad[o, p].
template <class T> struct FewRowsGradient {
  int64_t depth, rows;
  const T* planes;
  int64_t images, image_step, lines, line_step, columns;
  const int64_t* distances;
  const T* grad;
  int64_t grad_row, grad_image, grad_line;
  T* sums;
  int64_t sums_row;  // elements between rows
};

// The kernels of one instruction set.
template <class T> struct ConvolutionKernels {
  CopyLine<T> copy_line;
  void (*copy)(int64_t rows, int64_t columns, Matrix<const T> from, T* to, int64_t to_row);  // to contiguous rows
  void (*correlate)(const Correlation<T>& c);                                                // vectors hold positions
  void (*correlate_rows)(const Correlation<T>& c);                                           // vectors hold rows
  void (*weight_gradient)(const WeightGradient<T>& g);
  void (*few_rows_gradient)(const FewRowsGradient<T>& g);
};

template <class T> void run_convolution(const Call& call, const ConvolutionKernels<T>& kernels);
template <class T> uint64_t convolution_workspace(const Call& call);
template <class T> void run_input_gradient(const Call& call, const ConvolutionKernels<T>& kernels);
template <class T> uint64_t input_gradient_workspace(const Call& call);
template <class T> void run_weight_gradient(const Call& call, const ConvolutionKernels<T>& kernels);
template <class T> uint64_t weight_gradient_workspace(const Call& call);

}  // namespace plugrad::cpu
