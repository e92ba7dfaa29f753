// Factorisations by Eigen, compiled once, for the baseline's instructions: matrices here are small. Each matrix is copied to
// one of Eigen's, so that strides cost no further code.
#define EIGEN_MPL2_ONLY
#define EIGEN_DONT_PARALLELIZE
#define EIGEN_NO_DEBUG
#include <backends/cpu/linalg.hpp>

#include <plugrad/sdk/backend.hpp>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>

#include <utility>
#include <vector>

namespace plugrad::cpu {
namespace {

template <class T> using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
using Steps = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
template <class T> using View = Eigen::Map<Matrix<T>, Eigen::Unaligned, Steps>;

template <class T> View<T> view(const plugrad_matrices& all, int64_t b) {
  return View<T>(static_cast<T*>(all.data) + b * all.batch_stride, all.rows, all.columns,
                 Steps(all.column_stride, all.row_stride));
}
bool is_empty(const plugrad_matrices& all) { return !all.rows || !all.columns; }

// Calls body(T(), b) for each matrix of the batch.
template <class Body>
plugrad_status each(plugrad_device* device, uint32_t dtype, const plugrad_matrices& all, Body body) noexcept {
  return guarded(OpenDevice::of(device).host, [&] {
    if (dtype != PLUGRAD_F32 && dtype != PLUGRAD_F64)
      throw BackendError(PLUGRAD_INVALID, "linear algebra is defined for f32 and f64");
    for (int64_t b = 0; b < all.batch; ++b) dtype == PLUGRAD_F32 ? body(float(), b) : body(double(), b);
  });
}

// --- LU.

// The swaps, in order, that take row `origin[i]` to row i. Counted from 1.
std::vector<int32_t> swaps_of(const std::vector<int32_t>& origin, size_t count) {
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

// Eigen factors square matrices. Rows or columns of zeros make one of any other: no pivot is chosen in them, unless all
// candidates are 0.
template <class T>
int32_t factor_lu(const plugrad_matrices& a, const plugrad_matrices& lu, const plugrad_matrices& pivots, int64_t b) {
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

plugrad_status lu(plugrad_device* device, uint32_t dtype, const plugrad_matrices* a, const plugrad_matrices* factors,
                  const plugrad_matrices* pivots, int32_t* failed) noexcept {
  return each(device, dtype, *a, [&]<class T>(T, int64_t b) {
    failed[b] = is_empty(*a) ? 0 : factor_lu<T>(*a, *factors, *pivots, b);
  });
}

plugrad_status swap_rows(plugrad_device* device, uint32_t dtype, const plugrad_matrices* pivots, const plugrad_matrices* x,
                         uint32_t flags) noexcept {
  return each(device, dtype, *x, [&]<class T>(T, int64_t b) {
    auto rows = view<T>(*x, b);
    const auto swaps = view<int32_t>(*pivots, b);
    for (Eigen::Index n = 0; n < swaps.rows(); ++n) {
      const Eigen::Index i = flags & PLUGRAD_LINALG_BACKWARDS ? swaps.rows() - 1 - n : n, other = swaps(i, 0) - 1;
      if (other < 0 || other >= rows.rows())
        throw BackendError(PLUGRAD_INVALID, "pivot " + std::to_string(other + 1) + " names no row of " +
                                                std::to_string(rows.rows()));
      if (other != i) rows.row(i).swap(rows.row(other));
    }
  });
}

// --- Triangular matrices.

template <unsigned kTriangle, class T> void solve(const Matrix<T>& a, Matrix<T>& x) {
  a.template triangularView<kTriangle>().solveInPlace(x);
}

plugrad_status solve_triangular(plugrad_device* device, uint32_t dtype, const plugrad_matrices* a, const plugrad_matrices* x,
                                uint32_t flags) noexcept {
  return each(device, dtype, *x, [&]<class T>(T, int64_t b) {
    if (is_empty(*x)) return;
    const Matrix<T> matrix = view<T>(*a, b);
    Matrix<T> solution = view<T>(*x, b);
    const bool unit = flags & PLUGRAD_LINALG_UNIT;
    if (flags & PLUGRAD_LINALG_UPPER)
      unit ? solve<Eigen::UnitUpper>(matrix, solution) : solve<Eigen::Upper>(matrix, solution);
    else
      unit ? solve<Eigen::UnitLower>(matrix, solution) : solve<Eigen::Lower>(matrix, solution);
    view<T>(*x, b) = solution;
  });
}

// Whether the leading minor of this order is positive. NaN is not.
template <class T> bool is_positive(const Matrix<T>& a, Eigen::Index order, Matrix<T>& factor) {
  const Eigen::LLT<Matrix<T>> llt(a.topLeftCorner(order, order));
  factor = llt.matrixL();
  return llt.info() == Eigen::Success && (factor.diagonal().array() > T(0)).all();
}

// Eigen does not say which minor is not positive. All larger ones are not, either, so it is found by halves.
template <class T> int32_t first_not_positive(const Matrix<T>& a) {
  Eigen::Index positive = 0, other = a.rows();
  for (Matrix<T> ignored; other - positive > 1;) {
    const Eigen::Index middle = (positive + other) / 2;
    (is_positive(a, middle, ignored) ? positive : other) = middle;
  }
  return static_cast<int32_t>(other);
}

plugrad_status cholesky(plugrad_device* device, uint32_t dtype, const plugrad_matrices* a, const plugrad_matrices* l,
                        int32_t* failed) noexcept {
  return each(device, dtype, *a, [&]<class T>(T, int64_t b) {
    const Matrix<T> matrix = view<T>(*a, b);
    Matrix<T> factor;
    failed[b] = is_empty(*a) || is_positive(matrix, matrix.rows(), factor) ? 0 : first_not_positive(matrix);
    if (!failed[b] && !is_empty(*a)) view<T>(*l, b) = factor;
  });
}

// --- Orthogonal factors.

plugrad_status qr(plugrad_device* device, uint32_t dtype, const plugrad_matrices* a, const plugrad_matrices* q,
                  const plugrad_matrices* r) noexcept {
  return each(device, dtype, *a, [&]<class T>(T, int64_t b) {
    if (is_empty(*a)) {
      if (q) view<T>(*q, b).setIdentity();
      return;
    }
    const Eigen::HouseholderQR<Matrix<T>> factors(view<T>(*a, b));
    auto upper = view<T>(*r, b);
    upper.setZero();
    const Eigen::Index count = std::min(a->rows, a->columns);
    upper.topRows(count) = factors.matrixQR().topRows(count).template triangularView<Eigen::Upper>();
    if (q) view<T>(*q, b) = factors.householderQ() * Matrix<T>::Identity(q->rows, q->columns);
  });
}

template <class T>
bool find_eigen(const Matrix<T>& a, const plugrad_matrices& values, const plugrad_matrices* vectors, int64_t b) {
  if (!a.template triangularView<Eigen::Lower>().toDenseMatrix().allFinite()) return false;
  const auto wanted = vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly;
  const Eigen::SelfAdjointEigenSolver<Matrix<T>> found(a, wanted);
  if (found.info() != Eigen::Success) return false;
  view<T>(values, b) = found.eigenvalues();
  if (vectors) view<T>(*vectors, b) = found.eigenvectors();
  return true;
}

plugrad_status eigh(plugrad_device* device, uint32_t dtype, const plugrad_matrices* a, const plugrad_matrices* values,
                    const plugrad_matrices* vectors, int32_t* failed) noexcept {
  return each(device, dtype, *a, [&]<class T>(T, int64_t b) {
    const bool done = is_empty(*a) || find_eigen<T>(view<T>(*a, b), *values, vectors, b);
    failed[b] = done ? 0 : 1;
  });
}

template <class Solver>
bool find_svd(const Solver& found, const plugrad_matrices* u, const plugrad_matrices& s, const plugrad_matrices* vh,
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

// The faster method first; the other one converges always.
template <class T>
bool find_svd(const Matrix<T>& a, const plugrad_matrices* u, const plugrad_matrices& s, const plugrad_matrices* vh,
              int64_t b) {
  unsigned options = 0;
  if (u) options |= u->columns == s.rows ? Eigen::ComputeThinU : Eigen::ComputeFullU;
  if (vh) options |= vh->rows == s.rows ? Eigen::ComputeThinV : Eigen::ComputeFullV;
  if (!a.allFinite()) return false;
  return find_svd(Eigen::BDCSVD<Matrix<T>>(a, options), u, s, vh, b) ||
         find_svd(Eigen::JacobiSVD<Matrix<T>>(a, options), u, s, vh, b);
}

plugrad_status svd(plugrad_device* device, uint32_t dtype, const plugrad_matrices* a, const plugrad_matrices* u,
                   const plugrad_matrices* s, const plugrad_matrices* vh, int32_t* failed) noexcept {
  return each(device, dtype, *a, [&]<class T>(T, int64_t b) {
    failed[b] = is_empty(*a) || find_svd<T>(view<T>(*a, b), u, *s, vh, b) ? 0 : 1;
    if (!is_empty(*a) || !u) return;
    view<T>(*u, b).setIdentity();
    view<T>(*vh, b).setIdentity();
  });
}

}  // namespace

const plugrad_linalg& linear_algebra() {
  static constexpr plugrad_linalg kTable = {
      sizeof(plugrad_linalg), 0, lu, swap_rows, solve_triangular, cholesky, qr, eigh, svd};
  return kTable;
}

}  // namespace plugrad::cpu
