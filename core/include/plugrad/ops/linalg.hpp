// Linear algebra of small matrices (.., m, n). The leading axes are a batch, and broadcast where a function takes several
// operands. Dtypes f32 and f64, and for linear equations, determinants, LU and Cholesky also c64 and c128; integers and
// bools become f32, halves are refused. Extents may be 0. Factors are computed in host memory, by devices whose plugin has
// the extension of plugrad/sdk/linalg.h; see PLUGRAD_FALLBACK for other devices.
// The functions wait for the device. They throw Error (invalid) for shapes that do not fit, and LinAlgError, with the
// matrix's position in the batch, where a matrix has no result. Gradients are right to any order unless a comment says
// otherwise.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>
#include <vector>

namespace plugrad::linalg {

// The error for a matrix that has no result: a matrix that is singular, not positive definite, or not finite. Its code is
// invalid.
class PLUGRAD_API LinAlgError : public Error {
 public:
  explicit LinAlgError(const std::string& message) : Error(Code::invalid, message) {}
  ~LinAlgError() override;
};

// --- Linear equations.

// Returns the x with a x = b for square a (.., n, n) and b (.., n, k), or (.., n). b holds vectors if b has rank 1 or the
// shape of a without its last axis. left = false solves x a = b. Throws LinAlgError if a matrix is singular.
PLUGRAD_API Tensor solve(const Tensor& a, const Tensor& b, bool left = true);
// Returns the inverse of square matrices. Throws LinAlgError if a matrix is singular. solve is faster and more accurate than
// a product with the inverse.
PLUGRAD_API Tensor inv(const Tensor& a);
// Returns the determinant (..) of square matrices. The second derivative at a singular matrix is not accurate.
PLUGRAD_API Tensor det(const Tensor& a);

struct SlogDet {
  Tensor sign, logabsdet;
};
// Returns the sign of the determinant, and the natural logarithm of its absolute value. A singular matrix gives 0 and -inf,
// and its gradient throws LinAlgError. The sign of a complex determinant is the determinant by its absolute value; the sign
// of a real one has no gradient.
PLUGRAD_API SlogDet slogdet(const Tensor& a);
// Returns the solution x of a x = b, or of x a = b if left is false, for a triangular a (.., n, n). The opposite triangle of
// a is not read. unitriangular: the diagonal of a counts as 1 and is not read either. Divides by zeros of the diagonal.
PLUGRAD_API Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left = true,
                                    bool unitriangular = false);

struct LuFactor {
  Tensor lu, pivots;
};
// Returns the factors of a (.., m, n) with its rows swapped, P^T a = L U, in one matrix: L below the diagonal, without its
// ones, and U on and above the diagonal. pivots (.., min(m, n)) of i32 count from 1: row i was swapped with row pivots[i]. A
// singular matrix has zeros on U's diagonal.
PLUGRAD_API LuFactor lu_factor(const Tensor& a);
struct Lu {
  Tensor p, l, u;
};
// Returns the factors of a (.., m, n) = p l u: a permutation (.., m, m), a lower triangular matrix with a diagonal of 1, and
// an upper triangular matrix. p has no gradient.
PLUGRAD_API Lu lu(const Tensor& a);
// Returns the x with a x = b from the result of lu_factor(a). adjoint solves a^H x = b. left = false solves x a = b, or x
// a^H = b.
PLUGRAD_API Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left = true, bool adjoint = false);
// Returns the lower triangular l (.., n, n) with l l^H = a, or with upper the adjoint of l. Reads only the lower triangle
// of a, or with upper the upper triangle, but the gradient is Hermitian. Throws LinAlgError if a matrix is not positive
// definite.
PLUGRAD_API Tensor cholesky(const Tensor& a, bool upper = false);
// Returns the x with a x = b from l = cholesky(a, upper).
PLUGRAD_API Tensor cholesky_solve(const Tensor& b, const Tensor& l, bool upper = false);

// --- Orthogonal factors.

enum class QrMode { reduced, complete, r };
struct Qr {
  Tensor q, r;
};
// Returns the factors of a (.., m, n) = q r with orthonormal columns of q and an upper triangular r. q has min(m, n)
// columns, or m columns with QrMode::complete; QrMode::r computes only r, and q is empty. The diagonal of r may be negative.
// The gradient needs linearly independent columns 0 .. min(m, n) - 1, and throws Error (invalid) for QrMode::complete with m
// > n.
PLUGRAD_API Qr qr(const Tensor& a, QrMode mode = QrMode::reduced);

struct Eigh {
  Tensor eigenvalues, eigenvectors;
};
// Returns the eigenvalues (.., n) of symmetric matrices in ascending order, and their eigenvectors as the orthonormal
// columns of (.., n, n). The signs of the eigenvectors are arbitrary. Reads the lower triangle, or with upper the upper
// triangle. Gradients through the vectors are infinite or NaN where eigenvalues are equal. Throws LinAlgError if a matrix is
// not finite.
PLUGRAD_API Eigh eigh(const Tensor& a, bool upper = false);
// Returns the eigenvalues alone: see eigh.
PLUGRAD_API Tensor eigvalsh(const Tensor& a, bool upper = false);

struct Svd {
  Tensor u, s, vh;
};
// Returns the factors of a (.., m, n) = u diag(s) vh with orthonormal columns of u, orthonormal rows of vh, and the singular
// values s (.., k) in descending order; k = min(m, n). u is (.., m, k) and vh (.., k, n), or with full_matrices (.., m, m)
// and (.., n, n), whose further columns and rows have no gradient. Signs are arbitrary. Gradients through u and vh are
// infinite or NaN where singular values are equal, and where m != n and a singular value is 0. Throws LinAlgError if a
// matrix is not finite.
PLUGRAD_API Svd svd(const Tensor& a, bool full_matrices = true);
// Returns the singular values alone: see svd.
PLUGRAD_API Tensor svdvals(const Tensor& a);

// Returns the pseudoinverse (.., n, m). Singular values up to max(atol, rtol * the largest) count as 0. By default atol is
// 0, and rtol is max(m, n) times the dtype's epsilon, or 0 if atol is given. The gradient is the gradient at constant rank.
PLUGRAD_API Tensor pinv(const Tensor& a, std::optional<double> atol = std::nullopt,
                        std::optional<double> rtol = std::nullopt);
// Returns the number (i64) of singular values above max(atol, rtol * the largest); defaults as in pinv.
PLUGRAD_API Tensor matrix_rank(const Tensor& a, std::optional<double> atol = std::nullopt,
                               std::optional<double> rtol = std::nullopt);

struct LeastSquares {
  Tensor solution, residuals, rank, singular_values;
};
// Returns the x that minimises the norm of a x - b, for a (.., m, n) of any rank and b as in solve. If several x minimise
// the norm, returns the x of least norm. Singular values up to rcond * the largest count as 0; rcond is max(m, n) times the
// dtype's epsilon by default. residuals are the squares of the norms of a x - b, per column, or empty unless m > n and all
// matrices have rank n. rank (..) is i64. Gradients flow through solution, at constant rank, and through residuals.
PLUGRAD_API LeastSquares lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond = std::nullopt);

// --- Norms.

// Returns the p-norm of the elements along axes, or of all elements. See norm, but integers become f32. The norm of no
// elements is 0; a negative or infinite ord throws Error (invalid) for no elements.
PLUGRAD_API Tensor vector_norm(const Tensor& x, double ord = 2, const Shape& axes = {}, bool keepdim = false);

enum class MatrixNorm { frobenius, nuclear };
// Returns the Frobenius norm, which is the square root of the sum of squares, or the nuclear norm, which is the sum of
// singular values, of the matrices along two axes. Halves only for the Frobenius norm.
PLUGRAD_API Tensor matrix_norm(const Tensor& a, MatrixNorm ord = MatrixNorm::frobenius, const Shape& axes = {-2, -1},
                               bool keepdim = false);
// Returns a norm of the matrices along two axes. ord 1: the largest sum of |elements| of a column; infinity: the largest sum
// of |elements| of a row; 2: the largest singular value; -1, -infinity and -2: the smallest sum or singular value. Throws
// Error (invalid) for any other ord.
PLUGRAD_API Tensor matrix_norm(const Tensor& a, double ord, const Shape& axes = {-2, -1}, bool keepdim = false);
// Returns the condition number: the norm of a times the norm of its inverse, infinite for a singular matrix. ord is as in
// matrix_norm; for 2 and -2 the result is a quotient of singular values, and m and n may differ.
PLUGRAD_API Tensor cond(const Tensor& a, double ord = 2);
PLUGRAD_API Tensor cond(const Tensor& a, MatrixNorm ord);

// --- Products and parts.

// Returns square matrices to a power; a negative n takes powers of the inverse, and 0 gives the identity.
PLUGRAD_API Tensor matrix_power(const Tensor& a, int64_t n);
// Returns the sum over an axis of the products of a and b, which broadcast.
PLUGRAD_API Tensor vecdot(const Tensor& a, const Tensor& b, int axis = -1);
// Returns the elements (.., k) of the last two axes for which the column minus the row is offset. May return a view.
PLUGRAD_API Tensor diagonal(const Tensor& x, int64_t offset = 0);

}  // namespace plugrad::linalg
