// Factors of single matrices. Eigen's templates take half a minute to compile for an element type, so each type has a unit
// of its own: factors_f32.cpp and factors_f64.cpp. factors_complex.cpp has the functions that take complex numbers.
#pragma once
#include <plugrad/sdk/linalg.h>

namespace plugrad::cpu {

// Each function works on matrix `b` of its batches. Matrices have elements.
template <class T> struct Factors {
  // Returns the number, from 1, of the first zero pivot, or 0.
  static int32_t lu(const plugrad_matrices& a, const plugrad_matrices& lu, const plugrad_matrices& pivots, int64_t b);
  // Solves in place; flags as for plugrad_linalg::solve_triangular.
  static void solve_triangular(const plugrad_matrices& a, const plugrad_matrices& x, uint32_t flags, int64_t b);
  // Returns the order of the first leading minor that is not positive, or 0.
  static int32_t cholesky(const plugrad_matrices& a, const plugrad_matrices& l, int64_t b);
  static void qr(const plugrad_matrices& a, const plugrad_matrices* q, const plugrad_matrices& r, int64_t b);
  // These return false for a matrix with NaN or infinities. Vectors are written if asked for.
  static bool eigh(const plugrad_matrices& a, const plugrad_matrices& values, const plugrad_matrices* vectors, int64_t b);
  static bool svd(const plugrad_matrices& a, const plugrad_matrices* u, const plugrad_matrices& s,
                  const plugrad_matrices* vh, int64_t b);
};
extern template struct Factors<float>;
extern template struct Factors<double>;

}  // namespace plugrad::cpu
