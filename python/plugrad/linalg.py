"""Linear algebra of small matrices (.., m, n) by the names of PyTorch and the array API. Leading axes are a batch.

Dtypes f32 and f64, for linear equations, determinants, LU and Cholesky also c64 and c128; integers become f32. Factors
are computed in host memory: functions raise NotImplementedError for tensors of a device that cannot factor matrices,
unless PLUGRAD_FALLBACK permits to compute elsewhere. They raise ValueError for unfit shapes, and LinAlgError, a
ValueError, where a matrix has no result. Gradients equal PyTorch's; core/include/plugrad/ops/linalg.hpp lists missing
gradients. Functions that reduce along axes take dim and keepdim, or axis and keepdims.

>>> from plugrad import linalg, tensor
>>> linalg.solve(tensor([[2.0, 0.0], [0.0, 4.0]]), tensor([2.0, 2.0]))
Tensor([1.  0.5])
"""

from collections.abc import Sequence
from typing import NamedTuple

from . import _plugrad
from ._plugrad import (Tensor, cross as _cross, matmul as matmul, multi_dot as multi_dot, outer as outer,
                       tensordot as tensordot)
from ._products import householder_product as householder_product, matrix_exp as matrix_exp

_Dims = int | Sequence[int] | None


class LinAlgError(ValueError):
    """A matrix has no result: it is singular, not positive definite, or not finite."""


class SlogdetResult(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


class LUFactorResult(NamedTuple):
    LU: Tensor
    pivots: Tensor


class LUResult(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor


class QRResult(NamedTuple):
    Q: Tensor
    R: Tensor


class EighResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class SVDResult(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


class LstsqResult(NamedTuple):
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


# --- Linear equations.


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The X with A X = B, or X A = B if left is False, for square A. B is vectors if it has rank 1 or the shape of A without
    its last axis."""
    return _plugrad._linalg_solve(A, B, left)


def inv(A: Tensor) -> Tensor:
    """The inverse of square matrices. solve is faster and more accurate than a product with it."""
    return _plugrad._linalg_inv(A)


def det(A: Tensor) -> Tensor:
    """The determinant of square matrices."""
    return _plugrad._linalg_det(A)


def slogdet(A: Tensor) -> SlogdetResult:
    """The sign of the determinant, and the natural logarithm of its absolute value."""
    return SlogdetResult(*_plugrad._linalg_slogdet(A))


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """The X with A X = B, or X A = B, for triangular A, whose opposite triangle is not read. With unitriangular the
    diagonal counts as 1."""
    return _plugrad._linalg_solve_triangular(A, B, upper, left, unitriangular)


def _require_pivot(name: str, pivot: bool) -> None:
    if not pivot:
        raise ValueError(f"[linalg.{name}] pivot is False: factors without swapped rows may not exist, leave it out")


def lu_factor(A: Tensor, *, pivot: bool = True) -> LUFactorResult:
    """Both triangular factors of A with swapped rows, in a single matrix, and the swaps (i32, counted from 1)."""
    _require_pivot("lu_factor", pivot)
    return LUFactorResult(*_plugrad._linalg_lu_factor(A))


def lu(A: Tensor, *, pivot: bool = True) -> LUResult:
    """A = P L U: a permutation, a lower triangular matrix with a diagonal of 1, and an upper triangular matrix."""
    _require_pivot("lu", pivot)
    return LUResult(*_plugrad._linalg_lu(A))


def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """The X with A X = B from lu_factor(A); with adjoint A is transposed."""
    return _plugrad._linalg_lu_solve(LU, pivots, B, left, adjoint)


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular L with A = L L^T; with upper its transpose. Reads a single triangle of A."""
    return _plugrad._linalg_cholesky(A, upper)


def cholesky_solve(B: Tensor, L: Tensor, *, upper: bool = False) -> Tensor:
    """The X with A X = B from L = cholesky(A, upper)."""
    return _plugrad._linalg_cholesky_solve(B, L, upper)


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> LstsqResult:
    """The X of least norm that minimises the norm of A X - B. Singular values up to rcond times the largest count as 0.
    residuals is empty unless A has more rows than columns and full rank. driver, a name of LAPACK's, does not change the
    method: it is that of "gelsd", whose result is right for the matrices of all drivers."""
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise ValueError(f"[linalg.lstsq] driver {driver!r} is unknown: 'gels', 'gelsy', 'gelsd' or 'gelss' expected")
    found = LstsqResult(*_plugrad._linalg_lstsq(A, B, rcond))
    if driver in ("gels", "gelsy"):  # LAPACK computes no singular values; gels no rank, and gelsy no residuals
        empty = _plugrad.zeros(0, dtype=A.dtype, device=A.device)
        found = found._replace(singular_values=empty)
        found = found._replace(rank=empty.to("i64")) if driver == "gels" else found._replace(residuals=empty)
    return found


# --- Orthogonal factors.


def qr(A: Tensor, mode: str = "reduced") -> QRResult:
    """A = Q R with orthonormal columns of Q and upper triangular R. mode: "reduced", "complete" or "r"; with "r" Q is
    empty."""
    return QRResult(*_plugrad._linalg_qr(A, mode))


def _is_upper(UPLO: str) -> bool:
    if UPLO not in ("L", "U", "l", "u"):
        raise ValueError(f"[linalg.eigh] UPLO is {UPLO!r}: expected 'L' or 'U'")
    return UPLO in "Uu"


def eigh(A: Tensor, UPLO: str = "L") -> EighResult:
    """The eigenvalues, ascending, and orthonormal eigenvectors of symmetric matrices; reads a single triangle of A."""
    return EighResult(*_plugrad._linalg_eigh(A, _is_upper(UPLO)))


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues, ascending, of symmetric matrices; reads a single triangle of A."""
    return _plugrad._linalg_eigvalsh(A, _is_upper(UPLO))


def svd(A: Tensor, full_matrices: bool = True) -> SVDResult:
    """A = U diag(S) Vh with orthonormal columns of U, orthonormal rows of Vh, and descending S."""
    return SVDResult(*_plugrad._linalg_svd(A, full_matrices))


def svdvals(A: Tensor) -> Tensor:
    """The singular values, descending."""
    return _plugrad._linalg_svdvals(A)


def _hermitian(A: Tensor) -> Tensor:
    lower = _plugrad.tril(A, -1)
    return _plugrad.tril(A) + lower.transpose(-2, -1)


def pinv(A: Tensor, rcond: float | None = None, *, atol: float | None = None, rtol: float | None = None,
         hermitian: bool = False) -> Tensor:
    """The pseudoinverse. Singular values up to max(atol, rtol times the largest) count as 0; rcond is rtol. rtol is
    max(m, n) times the dtype's epsilon unless a bound is given. hermitian: reads only the lower triangle."""
    return _plugrad._linalg_pinv(_hermitian(A) if hermitian else A, atol, rcond if rtol is None else rtol)


def matrix_rank(A: Tensor, tol: float | Tensor | None = None, *, atol: float | Tensor | None = None,
                rtol: float | Tensor | None = None, hermitian: bool = False) -> Tensor:
    """The number of singular values above max(atol, rtol times the largest); tol is atol. Defaults as in pinv. Tensors hold
    a bound for each matrix."""
    matrices, absolute = _hermitian(A) if hermitian else A, tol if atol is None else atol
    if isinstance(absolute, Tensor) or isinstance(rtol, Tensor):
        return _rank_above(svdvals(matrices.detach()), absolute, rtol, max(A.shape[-2:]))
    return _plugrad._linalg_matrix_rank(matrices, absolute, rtol)


def _rank_above(values: Tensor, atol: float | Tensor | None, rtol: float | Tensor | None, size: int) -> Tensor:
    usual = size * (2.0**-52 if values.dtype == "f64" else 2.0**-23)
    if rtol is None:  # as PyTorch, also where only some of the bounds are positive
        rtol = _plugrad.where(atol > 0, 0.0, usual).to(values.dtype) if isinstance(atol, Tensor) else 0.0
    if not values.shape[-1]:
        return _plugrad.zeros(values.shape[:-1], dtype="i64", device=values.device)
    bound = _plugrad.maximum(rtol * values.amax(-1), _plugrad.zeros_like(values.amax(-1)) + (0.0 if atol is None else atol))
    return (values > bound.unsqueeze(-1)).sum(-1)


# --- Norms.


def _axes(dim: _Dims, axis: _Dims) -> _Dims:
    if dim is not None and axis is not None:
        raise TypeError("[linalg] 'dim' is given twice: once as 'axis'")
    return axis if dim is None else dim


def vector_norm(x: Tensor, ord: float = 2, dim: _Dims = None, keepdim: bool = False, *, axis: _Dims = None,
                keepdims: bool = False) -> Tensor:
    """The p-norm along dim, or of all elements."""
    over = _axes(dim, axis)
    return _plugrad._linalg_vector_norm(x, float(ord), () if over is None else over, keepdim or keepdims)


def matrix_norm(A: Tensor, ord: float | str = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *,
                axis: _Dims = None, keepdims: bool = False) -> Tensor:
    """The norm of the matrices along two dims: "fro", "nuc", 1, 2, infinity, or the negative of such a number."""
    over = dim if axis is None else axis
    return _plugrad._linalg_matrix_norm(A, ord if isinstance(ord, str) else float(ord), over, keepdim or keepdims)


def norm(A: Tensor, ord: float | str | None = None, dim: _Dims = None, keepdim: bool = False, *, axis: _Dims = None,
         keepdims: bool = False) -> Tensor:
    """vector_norm along a dim, or of all elements without ord; matrix_norm along two dims, or of a matrix with ord."""
    over, kept = _axes(dim, axis), keepdim or keepdims
    if over is None and ord is not None:
        if len(A.shape) not in (1, 2):
            raise ValueError(f"[linalg.norm] A has shape {A.shape}: with ord and without dim, one or two axes are expected")
        over = tuple(range(len(A.shape)))
    if ord is None:
        return vector_norm(A, 2, over, kept)
    if over is not None and not isinstance(over, int) and len(over) == 2:
        return matrix_norm(A, ord, over, kept)
    if isinstance(ord, str):
        raise ValueError(f"[linalg.norm] ord {ord!r} is a norm of matrices: give two dims")
    return vector_norm(A, ord, over, kept)


def cond(A: Tensor, p: float | str | None = None) -> Tensor:
    """The condition number: the norm of A times the norm of its inverse. None is 2, the quotient of the largest and the
    smallest singular value."""
    return _plugrad._linalg_cond(A, p if isinstance(p, str) else float(2 if p is None else p))


# --- Products and parts.


def matrix_power(A: Tensor, n: int) -> Tensor:
    """Square matrices to a power; a negative power takes powers of the inverse."""
    return _plugrad._linalg_matrix_power(A, n)


def vecdot(x: Tensor, y: Tensor, dim: int = -1, *, axis: int | None = None) -> Tensor:
    """The sum of products along dim."""
    return _plugrad._linalg_vecdot(x, y, dim if axis is None else axis)


def cross(x: Tensor, y: Tensor, dim: int = -1, *, axis: int | None = None) -> Tensor:
    """The cross product along a dim of extent 3."""
    return _cross(x, y, dim if axis is None else axis)


def matrix_transpose(x: Tensor) -> Tensor:
    """A view with the last two axes exchanged."""
    return x.transpose(-2, -1)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The elements of two axes with offset = place along dim2 - place along dim1."""
    return _plugrad._linalg_diagonal(_plugrad.movedim(A, (dim1, dim2), (-2, -1)), offset)


def trace(x: Tensor, *, offset: int = 0) -> Tensor:
    """The sum of diagonal(x, offset=offset)."""
    return diagonal(x, offset=offset).sum(-1)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 1, x, ..., x^(N - 1) of the elements of x (.., n): (.., n, N). N is n if it is left out."""
    if N is not None and N < 2:
        raise ValueError(f"[linalg.vander] N is {N}: give 2 or more")
    points = x if x.shape else x.reshape(1)
    base = points if x.is_floating_point() else points.to("i64")
    count = points.shape[-1] if N is None else N
    ones = _plugrad.ones_like(base).unsqueeze(-1)
    powers = base.unsqueeze(-1).expand(*points.shape, max(count - 1, 0)).cumprod(-1)
    return _plugrad.cat([ones, powers], -1)[..., :count]


# --- PyTorch's functions with a status beside the result. It is 0: a matrix without a result raises LinAlgError.


class _WithInfo(NamedTuple):
    result: Tensor
    info: Tensor


def _success(A: Tensor) -> Tensor:
    return _plugrad.zeros(A.shape[:-2], dtype="i32", device=A.device)


def inv_ex(A: Tensor, *, check_errors: bool = False) -> _WithInfo:
    """inv(A) and a status of 0. Raises LinAlgError for singular matrices, with and without check_errors."""
    return _WithInfo(inv(A), _success(A))


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> _WithInfo:
    """cholesky(A) and a status of 0. Raises LinAlgError unless all matrices are positive definite."""
    return _WithInfo(cholesky(A, upper=upper), _success(A))


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> _WithInfo:
    """solve(A, B) and a status of 0. Raises LinAlgError for singular matrices."""
    return _WithInfo(solve(A, B, left=left), _success(A))


class _LUFactorExResult(NamedTuple):
    LU: Tensor
    pivots: Tensor
    info: Tensor


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> _LUFactorExResult:
    """lu_factor(A) and a status of 0."""
    return _LUFactorExResult(*lu_factor(A, pivot=pivot), _success(A))


# --- Equations of tensors.


def _extent(shape: Sequence[int]) -> int:
    count = 1
    for each in shape:
        count *= each
    return count


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of A as a map from the tensors of its last axes to the tensors of its first `ind` axes: tensordot of both
    is the identity."""
    if ind < 1 or _extent(A.shape[:ind]) != _extent(A.shape[ind:]):
        raise ValueError(f"[linalg.tensorinv] A has shape {A.shape} and ind is {ind}: the first ind axes and the others "
                         "must have as many elements")
    count = _extent(A.shape[:ind])
    return inv(A.reshape(count, count)).reshape(A.shape[ind:] + A.shape[:ind])


def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """The X with tensordot(A, X, X.ndim) = B. dims are moved to the end of A's axes first."""
    moved = A if dims is None else _plugrad.movedim(A, tuple(dims), tuple(range(-len(dims), 0)))
    shape = moved.shape[len(B.shape):]
    if _extent(shape) != _extent(B.shape):
        raise ValueError(f"[linalg.tensorsolve] A has shape {A.shape} and B {B.shape}: the axes of A behind those of B must "
                         "have as many elements as B")
    count = _extent(shape)
    return solve(moved.reshape(count, count), B.reshape(count)).reshape(shape)
