// Products of vectors, matrices and tensors, as sums over shared axes of the operands. Operands of two dtypes are promoted
// as in add. Throws Error (invalid) with the shapes if they do not fit.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>
#include <string>
#include <vector>

namespace plugrad {

// Returns the sum of products of the equation: "ij,jk->ik" is the product of two matrices. Each operand has a letter per
// axis; "..." names any number of axes, and these axes broadcast. The result sums over the letters that are missing after
// "->"; without "->" the result has the axes of "..." and then the letters that appear once, sorted. A repeated letter in an
// operand takes the diagonal. Axes with the same letter have the same extent, or 1. More than two operands are multiplied
// from left to right.
PLUGRAD_API Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands);
// Returns the sum of products over the last `axes` axes of a and the first `axes` axes of b. The result has the remaining
// axes of a, then of b.
PLUGRAD_API Tensor tensordot(const Tensor& a, const Tensor& b, int64_t axes = 2);
// Returns the sum of products over the axes axes_a of a and axes_b of b, pair by pair. An extent of 1 is repeated to the
// extent of its pair.
PLUGRAD_API Tensor tensordot(const Tensor& a, const Tensor& b, const Shape& axes_a, const Shape& axes_b);

// Returns the products of each element of a (n) with each element of b (m): (n, m).
PLUGRAD_API Tensor outer(const Tensor& a, const Tensor& b);
// Returns the sum of products over the last axes of a and b. The result has the remaining axes of a, then of b. If a or b
// has rank 0, the result is a b.
PLUGRAD_API Tensor inner(const Tensor& a, const Tensor& b);
// Returns the sum of products of two vectors of the same length.
PLUGRAD_API Tensor dot(const Tensor& a, const Tensor& b);
// Returns the dot product of the conjugate of a and b, both (n).
PLUGRAD_API Tensor vdot(const Tensor& a, const Tensor& b);
// Returns the product of a matrix and a vector, (n, m) x (m) -> (n).
PLUGRAD_API Tensor mv(const Tensor& x, const Tensor& vec);
// Returns the product of two matrices, (n, m) x (m, p) -> (n, p).
PLUGRAD_API Tensor mm(const Tensor& x, const Tensor& mat2);
// Returns the products of two batches of matrices, (b, n, m) x (b, m, p) -> (b, n, p).
PLUGRAD_API Tensor bmm(const Tensor& x, const Tensor& mat2);
// Returns beta x + alpha (mat1 x mat2) for matrices; x broadcasts to the product. If beta is 0, the elements of x do not
// count, including NaN and infinity.
PLUGRAD_API Tensor addmm(const Tensor& x, const Tensor& mat1, const Tensor& mat2, Number beta = 1, Number alpha = 1);
// Returns beta x + alpha (mat x vec) for a matrix (n, m) and a vector (m): see addmm.
PLUGRAD_API Tensor addmv(const Tensor& x, const Tensor& mat, const Tensor& vec, Number beta = 1, Number alpha = 1);
// Returns beta x + alpha (batch1 x batch2) for batches of matrices: see addmm.
PLUGRAD_API Tensor baddbmm(const Tensor& x, const Tensor& batch1, const Tensor& batch2, Number beta = 1, Number alpha = 1);
// Returns beta x + alpha times the sum over the batch of the products batch1 x batch2: a matrix.
PLUGRAD_API Tensor addbmm(const Tensor& x, const Tensor& batch1, const Tensor& batch2, Number beta = 1, Number alpha = 1);
// Returns beta x + alpha times the outer product of two vectors.
PLUGRAD_API Tensor addr(const Tensor& x, const Tensor& vec1, const Tensor& vec2, Number beta = 1, Number alpha = 1);
// Returns x + value tensor1 tensor2, element by element; all broadcast. Halves are rounded once.
PLUGRAD_API Tensor addcmul(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2, Number value = 1);
// Returns x + value tensor1 / tensor2, element by element; all broadcast. Halves are rounded once. Integers give f32.
PLUGRAD_API Tensor addcdiv(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2, Number value = 1);

// Returns the Kronecker product: each element of a times all of b. The extents are multiplied. The operand of smaller rank
// gets axes in front.
PLUGRAD_API Tensor kron(const Tensor& a, const Tensor& b);
// Returns the cross product along an axis of extent 3; by default, along the first such axis. The ranks are equal, and the
// remaining axes broadcast.
PLUGRAD_API Tensor cross(const Tensor& a, const Tensor& b, std::optional<int64_t> axis = std::nullopt);
// Returns the sum of the diagonal of a matrix. Sums of bools and integers are i64.
PLUGRAD_API Tensor trace(const Tensor& x);
// Returns the matrices x (.., n, n) to the power n >= 0; the power 0 is the identity. Throws Error (unsupported) for a
// negative n.
PLUGRAD_API Tensor matrix_power(const Tensor& x, int64_t n);
// Returns the product of two or more matrices, in the order with the fewest multiplications. The first and the last operand
// may be vectors.
PLUGRAD_API Tensor multi_dot(const std::vector<Tensor>& tensors);
// Returns the sum over i and j of input1[.., i] weight[o, i, j] input2[.., j], plus bias (o): (.., o).
PLUGRAD_API Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias = {});

}  // namespace plugrad
