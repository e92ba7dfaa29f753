// The definitions of Factors, by Eigen, for the baseline's instructions: matrices here are small. Each matrix is copied to
// an Eigen matrix, so strides need no further code.
#pragma once
#define EIGEN_MPL2_ONLY
#define EIGEN_DONT_PARALLELIZE
#define EIGEN_NO_DEBUG
#include <backends/cpu/factors.hpp>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>

#include <algorithm>
#include <utility>
#include <vector>

namespace plugrad::cpu {

template <class T> using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
using Steps = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
template <class T> using View = Eigen::Map<Matrix<T>, Eigen::Unaligned, Steps>;

template <class T> View<T> view(const plugrad_matrices& all, int64_t b) {
  return View<T>(static_cast<T*>(all.data) + b * all.batch_stride, all.rows, all.columns,
                 Steps(all.column_stride, all.row_stride));
}

// --- LU.

// Returns the swaps, in order, to take row `origin[i]` to row i. Counted from 1.
inline std::vector<int32_t> swaps_of(const std::vector<int32_t>& origin, size_t count) {
  std::vector<int32_t> row_at(origin.size()), place_of(origin.size()), swaps(count);
  for (size_t i = 0; i < origin.size(); ++i) row_at[i] = place_of[i] = static_cast<int32_t>(i);
  for (size_t i = 0; i < count; ++i) {
    const auto from = static_cast<size_t>(place_of[static_cast<size_t>(origin[i])]);
    swaps[i] = static_cast<int32_t>(from) + 1;
    place_of[static_cast<size_t>(row_at[i])] = static_cast<int32_t>(from);
    std::swap(row_at[i], row_at[from]);
  }
  return swaps;
}

// Eigen factors square matrices. Rows or columns of zeros complete a matrix to a square: no pivot is chosen in them, unless
// all candidates are 0.
template <class T>
int32_t Factors<T>::lu(const plugrad_matrices& a, const plugrad_matrices& lu, const plugrad_matrices& pivots, int64_t b) {
  const Eigen::Index n = std::max(a.rows, a.columns), count = std::min(a.rows, a.columns);
  Matrix<T> square = Matrix<T>::Zero(n, n);
  square.topLeftCorner(a.rows, a.columns) = view<T>(a, b);
  const Eigen::PartialPivLU<Matrix<T>> factors(square);
  view<T>(lu, b) = factors.matrixLU().topLeftCorner(a.rows, a.columns);
  std::vector<int32_t> origin(static_cast<size_t>(n));
  for (Eigen::Index i = 0; i < n; ++i)
    origin[static_cast<size_t>(factors.permutationP().indices()(i))] = static_cast<int32_t>(i);
  const std::vector<int32_t> swaps = swaps_of(origin, static_cast<size_t>(count));
  view<int32_t>(pivots, b) = Eigen::Map<const Eigen::Matrix<int32_t, Eigen::Dynamic, 1>>(swaps.data(), count);
  for (Eigen::Index i = 0; i < count; ++i)
    if (factors.matrixLU()(i, i) == T(0)) return static_cast<int32_t>(i) + 1;
  return 0;
}

// --- Triangular matrices.

template <unsigned kTriangle, class T> void solve(const Matrix<T>& a, Matrix<T>& x) {
  a.template triangularView<kTriangle>().solveInPlace(x);
}

template <class T>
void Factors<T>::solve_triangular(const plugrad_matrices& a, const plugrad_matrices& x, uint32_t flags, int64_t b) {
  const Matrix<T> matrix = view<T>(a, b);
  Matrix<T> solution = view<T>(x, b);
  const bool unit = flags & PLUGRAD_LINALG_UNIT;
  if (flags & PLUGRAD_LINALG_UPPER) unit ? solve<Eigen::UnitUpper>(matrix, solution) : solve<Eigen::Upper>(matrix, solution);
  else unit ? solve<Eigen::UnitLower>(matrix, solution) : solve<Eigen::Lower>(matrix, solution);
  view<T>(x, b) = solution;
}

// Whether the leading minor of this order is positive. NaN is not positive.
template <class T> bool is_positive(const Matrix<T>& a, Eigen::Index order, Matrix<T>& factor) {
  const Eigen::LLT<Matrix<T>> llt(a.topLeftCorner(order, order));
  factor = llt.matrixL();
  return llt.info() == Eigen::Success && (factor.diagonal().real().array() > 0).all();
}

// Eigen does not report the first minor that is not positive. All larger minors are not positive, either, so bisection finds
// it.
template <class T> int32_t first_not_positive(const Matrix<T>& a) {
  Eigen::Index positive = 0, other = a.rows();
  for (Matrix<T> ignored; other - positive > 1;) {
    const Eigen::Index middle = (positive + other) / 2;
    (is_positive(a, middle, ignored) ? positive : other) = middle;
  }
  return static_cast<int32_t>(other);
}

template <class T> int32_t Factors<T>::cholesky(const plugrad_matrices& a, const plugrad_matrices& l, int64_t b) {
  const Matrix<T> matrix = view<T>(a, b);
  Matrix<T> factor;
  if (!is_positive(matrix, matrix.rows(), factor)) return first_not_positive(matrix);
  view<T>(l, b) = factor;
  return 0;
}

// --- Orthogonal factors.

template <class T>
void Factors<T>::qr(const plugrad_matrices& a, const plugrad_matrices* q, const plugrad_matrices& r, int64_t b) {
  const Eigen::HouseholderQR<Matrix<T>> factors(view<T>(a, b));
  auto upper = view<T>(r, b);
  upper.setZero();
  const Eigen::Index count = std::min(a.rows, a.columns);
  upper.topRows(count) = factors.matrixQR().topRows(count).template triangularView<Eigen::Upper>();
  if (q) view<T>(*q, b) = factors.householderQ() * Matrix<T>::Identity(q->rows, q->columns);
}

template <class T>
bool Factors<T>::eigh(const plugrad_matrices& a, const plugrad_matrices& values, const plugrad_matrices* vectors,
                      int64_t b) {
  const Matrix<T> matrix = view<T>(a, b);
  if (!matrix.template triangularView<Eigen::Lower>().toDenseMatrix().allFinite()) return false;
  const auto wanted = vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly;
  const Eigen::SelfAdjointEigenSolver<Matrix<T>> found(matrix, wanted);
  if (found.info() != Eigen::Success) return false;
  view<T>(values, b) = found.eigenvalues();
  if (vectors) view<T>(*vectors, b) = found.eigenvectors();
  return true;
}

template <class Solver>
bool write_svd(const Solver& found, const plugrad_matrices* u, const plugrad_matrices& s, const plugrad_matrices* vh,
               int64_t b) {
  using T = typename Solver::Scalar;
  if (found.info() != Eigen::Success) return false;
  view<T>(s, b) = found.singularValues();
  if (u) {
    view<T>(*u, b) = found.matrixU();
    view<T>(*vh, b) = found.matrixV().transpose();
  }
  return true;
}

// Tries the faster method first; the second method always converges.
template <class T>
bool Factors<T>::svd(const plugrad_matrices& a, const plugrad_matrices* u, const plugrad_matrices& s,
                     const plugrad_matrices* vh, int64_t b) {
  unsigned options = 0;
  if (u) options |= u->columns == s.rows ? Eigen::ComputeThinU : Eigen::ComputeFullU;
  if (vh) options |= vh->rows == s.rows ? Eigen::ComputeThinV : Eigen::ComputeFullV;
  const Matrix<T> matrix = view<T>(a, b);
  if (!matrix.allFinite()) return false;
  return write_svd(Eigen::BDCSVD<Matrix<T>>(matrix, options), u, s, vh, b) ||
         write_svd(Eigen::JacobiSVD<Matrix<T>>(matrix, options), u, s, vh, b);
}

}  // namespace plugrad::cpu
