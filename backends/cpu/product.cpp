// Matrix products that are too small for the BLAS, matrix times vector, and all of them where there is no BLAS.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/product.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/fold-inl.hpp>
#include <backends/cpu/matmul.hpp>
#include <backends/cpu/rows.hpp>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kDepth = 256;  // of the sums that stay in registers; also what a packed strip of columns holds

template <class T> struct Kernel {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static int64_t lanes() { return int64_t(hn::Lanes(D())); }

  // rows x (vectors * lanes) elements of c. The last vector counts only `last` lanes.
  template <int rows, int vectors>
  static HWY_INLINE void strip(int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool add, int64_t last) {
    const D d;
    const int64_t wide = lanes();
    V sums[rows][vectors];
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v) sums[r][v] = hn::Zero(d);
    for (int64_t i = 0; i < k; ++i) {
      V right[vectors];
      for (int v = 0; v < vectors; ++v) right[v] = hn::LoadU(d, b.data + i * b.row + v * wide);
      for (int r = 0; r < rows; ++r) {
        const V left = hn::Set(d, a.data[r * a.row + i * a.column]);
        for (int v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(left, right[v], sums[r][v]);
      }
    }
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v) {
        T* to = c.data + r * c.row + v * wide;
        if (v == vectors - 1 && last < wide) {
          if (add) sums[r][v] = hn::Add(sums[r][v], load_part(d, to, size_t(last), T(0)));
          store_part(d, sums[r][v], to, size_t(last));
        } else {
          if (add) sums[r][v] = hn::Add(sums[r][v], hn::LoadU(d, to));
          hn::StoreU(sums[r][v], d, to);
        }
      }
  }

  template <int vectors>
  static void panel(int64_t m, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool add, int64_t last) {
    int64_t r = 0;
    const auto left = [&] { return Matrix<const T>{a.data + r * a.row, a.row, a.column}; };
    const auto to = [&] { return Matrix<T>{c.data + r * c.row, c.row, c.column}; };
    for (; r + 6 <= m; r += 6) strip<6, vectors>(k, left(), b, to(), add, last);
    for (; r + 2 <= m; r += 2) strip<2, vectors>(k, left(), b, to(), add, last);
    if (r < m) strip<1, vectors>(k, left(), b, to(), add, last);
  }

  // The last columns, fewer than a vector: a copy with whole vectors, so that nothing is read beyond the operand.
  static void tail(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool add) {
    HWY_ALIGN T packed[kDepth * HWY_MAX_BYTES / sizeof(T)];
    const int64_t wide = lanes();
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < wide; ++j) packed[i * wide + j] = j < n ? b.data[i * b.row + j] : T(0);
    panel<1>(m, k, a, {packed, wide, 1}, c, add, n);
  }

  // c (m) = a b for a vector b: each element is a fold of a contiguous row.
  static void dots(int64_t m, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool add) {
    const D d;
    const int64_t wide = lanes();
    for (int64_t r = 0; r < m; ++r) {
      const T* x = a.data + r * a.row;
      double sum = 0;
      for (int64_t first = 0; first < k; first += 4 * kDepth) {
        const int64_t end = std::min(k, first + 4 * kDepth);
        V s = hn::Zero(d), t = s, u = s, v = s;
        int64_t i = first;
        for (; i + 4 * wide <= end; i += 4 * wide) {
          s = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, b.data + i), s);
          t = hn::MulAdd(hn::LoadU(d, x + i + wide), hn::LoadU(d, b.data + i + wide), t);
          u = hn::MulAdd(hn::LoadU(d, x + i + 2 * wide), hn::LoadU(d, b.data + i + 2 * wide), u);
          v = hn::MulAdd(hn::LoadU(d, x + i + 3 * wide), hn::LoadU(d, b.data + i + 3 * wide), v);
        }
        for (; i + wide <= end; i += wide) s = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, b.data + i), s);
        sum += double(Folding<Sum<T>>::fold_lanes(hn::Add(hn::Add(s, t), hn::Add(u, v))));
        for (; i < end; ++i) sum += double(x[i]) * double(b.data[i]);
      }
      T& to = c.data[r * c.row];
      to = add ? T(to + sum) : T(sum);
    }
  }

  static void multiply(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool add) {
    const int64_t wide = lanes();
    if (n == 1 && a.column == 1 && b.row == 1) return dots(m, k, a, b, c, add);
    for (int64_t first = 0; first < k; first += kDepth, add = true) {
      const int64_t depth = std::min(kDepth, k - first);
      const Matrix<const T> left{a.data + first * a.column, a.row, a.column};
      int64_t j = 0;
      const auto right = [&] { return Matrix<const T>{b.data + first * b.row + j, b.row, 1}; };
      const auto to = [&] { return Matrix<T>{c.data + j, c.row, 1}; };
      if (m == 1)  // long strips, as each of b's elements is read once
        for (; j + 8 * wide <= n; j += 8 * wide) strip<1, 8>(depth, left, right(), to(), add, wide);
      for (; j + 2 * wide <= n; j += 2 * wide) panel<2>(m, depth, left, right(), to(), add, wide);
      for (; j + wide <= n; j += wide) panel<1>(m, depth, left, right(), to(), add, wide);
      if (j < n) tail(m, n - j, depth, left, right(), to(), add);
    }
  }

  static void general(const Call& call) { run_matmul<T>(call, multiply); }

  static plugrad_status run(const plugrad_kernel* self, plugrad_stream* stream, const plugrad_op* op) noexcept {
    const plugrad_view &c = *op->views[0], &a = *op->views[1], &b = *op->views[2];
    if (c.rank != 2 || !is_dense(a) || !is_dense(b) || !is_dense(c)) return run_kernel<general>(self, stream, op);
    const int64_t m = c.shape[0], n = c.shape[1], k = a.shape[1];
    if (m * k > kSmall || m * n > kSmall || m * n * k > kOwnWork) return run_kernel<general>(self, stream, op);
    multiply(m, n, k, {data<T>(a), k, 1}, {data<T>(b), n, 1}, {data<T>(c), n, 1}, op->flags & PLUGRAD_ACCUMULATE);
    return PLUGRAD_OK;
  }
  static constexpr int64_t kSmall = 4096;
};

template <class T> void append(RowList& rows) {
  KernelRow made = kernel_row(PLUGRAD_OP_MATMUL, kDtype<T>, Kernel<T>::run);
  made.layouts = PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE;
  made.flags |= PLUGRAD_ACCUMULATE;
  rows.push_back(with_workspace<matmul_workspace<T>>(made));
}

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_matmul<HWY_TARGET>(RowList& rows) {
  HWY_NAMESPACE::append<float>(rows);
  HWY_NAMESPACE::append<double>(rows);
}
}  // namespace plugrad::cpu
