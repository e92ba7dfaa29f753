// Batched matrix products in any layout: the plan cuts a product into pieces for the kernels of matmul.cpp.
#pragma once
#include <backends/cpu/forms.hpp>
#include <backends/cpu/operand.hpp>

namespace plugrad::cpu {

template <class T> struct Matrix {
  T* data;
  int64_t row, column;  // elements between rows, and between columns
};

// The addend of a product, of the same shape; without data, nothing is added. A bias is one row for all: its row is 0.
template <class T> struct Addend {
  const T* data = nullptr;
  int64_t row = 0, column = 1;

  Addend() = default;
  Addend(const T* first, int64_t row_step, int64_t column_step = 1) : data(first), row(row_step), column(column_step) {}
  // The output's own elements, if `sums`: the product is added to them.
  Addend(Matrix<T> c, bool sums) : Addend(sums ? c.data : nullptr, c.row, c.column) {}
};

// The number of products that a kernel sums before it adds the sum to the output. A strip of rows of this length fits the L1
// cache of any processor. Measured on Zen 5: longer sums of f32 are faster, longer sums of f64 are not.
template <class T> inline constexpr int64_t kDepth = sizeof(T) == 4 ? 1024 : 256;

// The columns of a right operand in panels of ProductKernels::columns columns, row by row; zeros fill the last panel.
template <class T> struct Panels {
  const T* data;
  int64_t stride;  // elements between panels
};

// Memory to be read soon: `lines` cache lines from run and from every `step` bytes on. Each fetch asks for `each` lines.
struct Ahead {
  const char* run = nullptr;
  int64_t step = 0, lines = 0, line = 0, each = 0, left = INT64_MAX;

  void fetch() {
    for (int64_t i = 0; i < each && left > 0; ++i, --left) {
      __builtin_prefetch(run + line * 64, 0, 2);
      if (++line == lines) {
        line = 0;
        run += step;
      }
    }
  }
  void divide_by(int64_t fetches) { each = (left + fetches - 1) / fetches; }
};

// The most vectors for a multiplication with a single reading of the matrix's rows.
inline constexpr int64_t kFewVectors = 8;

// The kernels of one instruction set. On the calling thread they store a b + addend in c (m x n). Rows of c and of the
// addend are contiguous.
template <class T> struct ProductKernels {
  int64_t columns;  // of a panel
  // The rows of b are contiguous; or the rows of a and the columns of b, with at most kFewVectors columns: then c and the
  // addend may have any layout.
  void (*multiply)(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, Addend<T> addend);
  // k is at most kDepth. soon: memory to fetch while it multiplies, or null.
  void (*multiply_panels)(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Panels<T> b, Matrix<T> c, Addend<T> addend,
                          Ahead* soon);
  // Copies b (k x n) to panels, `stride` elements apart.
  void (*pack)(int64_t n, int64_t k, Matrix<const T> b, T* panels, int64_t stride);
  // Copies rows x columns elements to contiguous rows, `to_row` elements apart.
  void (*copy)(int64_t rows, int64_t columns, Matrix<const T> from, T* to, int64_t to_row);
};

// The kernels of a Highway target.
template <int64_t target, class T> const ProductKernels<T>& product_kernels();

// Products of a matrix of halves and a few vectors; see narrow_dots-inl.hpp.
struct FewVectors {
  bool (*serves)(const Call& call);
  uint64_t (*workspace)(const Call& call);  // bytes
  void (*multiply)(const Call& call);
};
template <int64_t target, class T> const FewVectors& few_vectors();

// Work on a product's elements as soon as they are final: rows x columns of the output's matrices, which follow each other.
// Several threads call it.
struct Following {
  void (*run)(void* context, int64_t row, int64_t rows, int64_t column, int64_t columns);
  // Returns memory that `run` will read for these elements.
  Ahead (*soon)(void* context, int64_t row, int64_t rows, int64_t column, int64_t columns);
  void* context;
};
// In a KernelRow's `own`: runs the product with work that follows its tiles, for a dense output. Returns false, having done
// nothing, if the product's tiles are not tiles of the output.
struct FollowedProduct {
  bool (*run)(const Call& call, const Following& following);
  const FormRows* form = nullptr;  // the right operand in panels
};

// The right operand in panels, kept by the host: whether it pays, its bytes, the product with it, and its packing, which
// sees the operand as input 0. columns: of a panel
template <class T> bool gains_from_panels(const Call& call);
template <class T> uint64_t kept_panels_bytes(const Call& call, int64_t columns);
template <class T> void run_kept_product(const Call& call, const ProductKernels<T>& kernels);
template <class T> void keep_panels(const Call& call, const ProductKernels<T>& kernels);

template <class T> void run_product(const Call& call, const ProductKernels<T>& kernels);
template <class T> bool run_product(const Call& call, const ProductKernels<T>& kernels, const Following& following);
template <class T> uint64_t product_workspace(const Call& call);

}  // namespace plugrad::cpu
