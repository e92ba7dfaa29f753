// Calls Factors for each matrix of a batch.
#include <backends/cpu/linalg.hpp>

#include <backends/cpu/factors.hpp>

#include <plugrad/sdk/backend.hpp>

#include <complex>
#include <string>
#include <utility>

namespace plugrad::cpu {
namespace {

bool is_empty(const plugrad_matrices& all) { return !all.rows || !all.columns; }
template <class T> T& element(const plugrad_matrices& all, int64_t b, int64_t row, int64_t column) {
  return static_cast<T*>(all.data)[b * all.batch_stride + row * all.row_stride + column * all.column_stride];
}
template <class T> void set_identity(const plugrad_matrices& all, int64_t b) {
  for (int64_t i = 0; i < all.rows; ++i)
    for (int64_t j = 0; j < all.columns; ++j) element<T>(all, b, i, j) = static_cast<T>(i == j);
}

// Calls body(T(), b) for each matrix of the batch.
template <class Body>
plugrad_status each(plugrad_device* device, uint32_t dtype, const plugrad_matrices& all, Body body) noexcept {
  return guarded(OpenDevice::of(device).host, [&] {
    if (dtype != PLUGRAD_F32 && dtype != PLUGRAD_F64)
      throw BackendError(PLUGRAD_INVALID, "linear algebra is defined for f32 and f64");
    for (int64_t b = 0; b < all.batch; ++b) dtype == PLUGRAD_F32 ? body(float(), b) : body(double(), b);
  });
}

// The same for complex numbers, too.
template <class Body>
plugrad_status each_of_numbers(plugrad_device* device, uint32_t dtype, const plugrad_matrices& all, Body body) noexcept {
  if (dtype != PLUGRAD_C64 && dtype != PLUGRAD_C128) return each(device, dtype, all, body);
  return guarded(OpenDevice::of(device).host, [&] {
    for (int64_t b = 0; b < all.batch; ++b)
      dtype == PLUGRAD_C64 ? body(std::complex<float>(), b) : body(std::complex<double>(), b);
  });
}

plugrad_status lu(plugrad_device* device, uint32_t dtype, const plugrad_matrices* a, const plugrad_matrices* factors,
                  const plugrad_matrices* pivots, int32_t* failed) noexcept {
  return each_of_numbers(device, dtype, *a, [&]<class T>(T, int64_t b) {
    failed[b] = is_empty(*a) ? 0 : Factors<T>::lu(*a, *factors, *pivots, b);
  });
}

plugrad_status swap_rows(plugrad_device* device, uint32_t dtype, const plugrad_matrices* pivots, const plugrad_matrices* x,
                         uint32_t flags) noexcept {
  return each_of_numbers(device, dtype, *x, [&]<class T>(T, int64_t b) {
    for (int64_t n = 0; n < pivots->rows; ++n) {
      const int64_t i = flags & PLUGRAD_LINALG_BACKWARDS ? pivots->rows - 1 - n : n;
      const int64_t other = element<int32_t>(*pivots, b, i, 0) - int64_t{1};
      if (other < 0 || other >= x->rows)
        throw BackendError(PLUGRAD_INVALID,
                           "pivot " + std::to_string(other + 1) + " names no row of " + std::to_string(x->rows));
      for (int64_t j = 0; other != i && j < x->columns; ++j) std::swap(element<T>(*x, b, i, j), element<T>(*x, b, other, j));
    }
  });
}

plugrad_status solve_triangular(plugrad_device* device, uint32_t dtype, const plugrad_matrices* a, const plugrad_matrices* x,
                                uint32_t flags) noexcept {
  return each_of_numbers(device, dtype, *x, [&]<class T>(T, int64_t b) {
    if (!is_empty(*x)) Factors<T>::solve_triangular(*a, *x, flags, b);
  });
}

plugrad_status cholesky(plugrad_device* device, uint32_t dtype, const plugrad_matrices* a, const plugrad_matrices* l,
                        int32_t* failed) noexcept {
  return each_of_numbers(device, dtype, *a,
                         [&]<class T>(T, int64_t b) { failed[b] = is_empty(*a) ? 0 : Factors<T>::cholesky(*a, *l, b); });
}

plugrad_status qr(plugrad_device* device, uint32_t dtype, const plugrad_matrices* a, const plugrad_matrices* q,
                  const plugrad_matrices* r) noexcept {
  return each(device, dtype, *a, [&]<class T>(T, int64_t b) {
    if (!is_empty(*a)) Factors<T>::qr(*a, q, *r, b);
    else if (q) set_identity<T>(*q, b);
  });
}

plugrad_status eigh(plugrad_device* device, uint32_t dtype, const plugrad_matrices* a, const plugrad_matrices* values,
                    const plugrad_matrices* vectors, int32_t* failed) noexcept {
  return each(device, dtype, *a,
              [&]<class T>(T, int64_t b) { failed[b] = is_empty(*a) || Factors<T>::eigh(*a, *values, vectors, b) ? 0 : 1; });
}

plugrad_status svd(plugrad_device* device, uint32_t dtype, const plugrad_matrices* a, const plugrad_matrices* u,
                   const plugrad_matrices* s, const plugrad_matrices* vh, int32_t* failed) noexcept {
  return each(device, dtype, *a, [&]<class T>(T, int64_t b) {
    failed[b] = is_empty(*a) || Factors<T>::svd(*a, u, *s, vh, b) ? 0 : 1;
    if (!is_empty(*a) || !u) return;
    set_identity<T>(*u, b);
    set_identity<T>(*vh, b);
  });
}

}  // namespace

const plugrad_linalg* linear_algebra() {
  static constexpr plugrad_linalg kTable = {
      sizeof(plugrad_linalg), 0, lu, swap_rows, solve_triangular, cholesky, qr, eigh, svd};
  return &kTable;
}

}  // namespace plugrad::cpu
