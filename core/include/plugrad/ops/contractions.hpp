// Products of vectors, matrices and tensors, as sums over shared axes of the operands. Operands of two dtypes are promoted
// as in add. Throws Error (invalid) with the shapes if they do not fit.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>
#include <string>
#include <vector>

namespace plugrad {

// The sum of products of the equation: "ij,jk->ik" is the product of two matrices. Each operand has a letter per axis; "..."
// names any number of axes, and these axes broadcast. Letters missing behind "->" are summed over; without "->" the result
// has the axes of "..." and then the letters that appear once, sorted. A repeated letter in an operand takes the diagonal.
// Axes of the same letter have the same extent, or 1. More than two operands are multiplied from left to right.
PLUGRAD_API Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands);
// The sum over the last `axes` axes of a and the first `axes` axes of b: the remaining axes of a, then of b.
PLUGRAD_API Tensor tensordot(const Tensor& a, const Tensor& b, int64_t axes = 2);
// The sum over the axes axes_a of a and axes_b of b, pair by pair. An extent of 1 is repeated to the extent of its pair.
PLUGRAD_API Tensor tensordot(const Tensor& a, const Tensor& b, const Shape& axes_a, const Shape& axes_b);

// a (n) and b (m): (n, m), the product of each element with each.
PLUGRAD_API Tensor outer(const Tensor& a, const Tensor& b);
// The sum over the last axes of both: the remaining axes of a, then of b. If a or b has rank 0, a b.
PLUGRAD_API Tensor inner(const Tensor& a, const Tensor& b);
// The sum of products of two vectors of the same length.
PLUGRAD_API Tensor dot(const Tensor& a, const Tensor& b);
// The same: there are no complex numbers.
PLUGRAD_API Tensor vdot(const Tensor& a, const Tensor& b);
// (n, m) x (m) -> (n).
PLUGRAD_API Tensor mv(const Tensor& x, const Tensor& vec);
// (n, m) x (m, p) -> (n, p).
PLUGRAD_API Tensor mm(const Tensor& x, const Tensor& mat2);
// (b, n, m) x (b, m, p) -> (b, n, p).
PLUGRAD_API Tensor bmm(const Tensor& x, const Tensor& mat2);
// beta x + alpha (mat1 x mat2), of matrices; x broadcasts to the product. If beta is 0, the elements of x do not count, NaN
// and infinity included.
PLUGRAD_API Tensor addmm(const Tensor& x, const Tensor& mat1, const Tensor& mat2, Number beta = 1, Number alpha = 1);
// The same for a matrix (n, m) and a vector (m).
PLUGRAD_API Tensor addmv(const Tensor& x, const Tensor& mat, const Tensor& vec, Number beta = 1, Number alpha = 1);
// The same for batches of matrices.
PLUGRAD_API Tensor baddbmm(const Tensor& x, const Tensor& batch1, const Tensor& batch2, Number beta = 1, Number alpha = 1);
// beta x + alpha times the sum of the products of two batches, a matrix.
PLUGRAD_API Tensor addbmm(const Tensor& x, const Tensor& batch1, const Tensor& batch2, Number beta = 1, Number alpha = 1);
// beta x + alpha times the outer product of two vectors.
PLUGRAD_API Tensor addr(const Tensor& x, const Tensor& vec1, const Tensor& vec2, Number beta = 1, Number alpha = 1);
// x + value tensor1 tensor2, element by element; all broadcast. Halves are rounded once.
PLUGRAD_API Tensor addcmul(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2, Number value = 1);
// x + value tensor1 / tensor2, element by element; all broadcast. Halves are rounded once. Integers give f32.
PLUGRAD_API Tensor addcdiv(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2, Number value = 1);

// The Kronecker product: each element of a times all of b. Extents multiply. The smaller rank gets axes in front.
PLUGRAD_API Tensor kron(const Tensor& a, const Tensor& b);
// The cross product along an axis of extent 3; by default, along the first such axis. The ranks are equal, and the remaining
// axes broadcast.
PLUGRAD_API Tensor cross(const Tensor& a, const Tensor& b, std::optional<int64_t> axis = std::nullopt);
// The sum of the diagonal of a matrix. Sums of bools and integers are i64.
PLUGRAD_API Tensor trace(const Tensor& x);
// x (.., n, n) times itself, n >= 0 times in all; 0 gives the identity. Throws Error (unsupported) for a negative n.
PLUGRAD_API Tensor matrix_power(const Tensor& x, int64_t n);
// The product of two matrices or more, in the order with the fewest multiplications. The first and the last operand may
// be vectors.
PLUGRAD_API Tensor multi_dot(const std::vector<Tensor>& tensors);
// The sum over i and j of input1[.., i] weight[o, i, j] input2[.., j], plus bias (o): (.., o).
PLUGRAD_API Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias = {});

}  // namespace plugrad
