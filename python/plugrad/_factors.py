"""Linear algebra of PyTorch outside of torch.linalg."""

from typing import NamedTuple

from . import _plugrad, linalg as _linalg
from ._plugrad import Tensor
from ._products import matrix_exp as matrix_exp, ormqr as ormqr
from .linalg import cholesky as cholesky, det as det, qr as qr, slogdet as slogdet

inverse = _linalg.inv


class SVD(NamedTuple):
    U: Tensor
    S: Tensor
    V: Tensor


class TriangularSolve(NamedTuple):
    solution: Tensor
    cloned_coefficient: Tensor


class LUUnpacked(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> SVD:
    """input = U diag(S) V^T. Without `some` U and V are square; without compute_uv they are zeros. Prefer linalg.svd in new
    code; it returns V transposed."""
    if not compute_uv:
        m, n = input.shape[-2:]
        u, v = (_plugrad.zeros(input.shape[:-2] + (k, k), dtype=input.dtype, device=input.device) for k in (m, n))
        return SVD(u, _linalg.svdvals(input), v)
    u, s, vh = _linalg.svd(input, full_matrices=not some)
    return SVD(u, s, vh.transpose(-2, -1))


def logdet(input: Tensor) -> Tensor:
    """The natural logarithm of the determinant: NaN where the determinant is negative, -infinity where it is 0."""
    sign, size = _linalg.slogdet(input)
    return _plugrad.where(sign < 0, float("nan"), size)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """linalg.pinv."""
    return _linalg.pinv(input, rcond)


def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """The X with A X = input from L = linalg.cholesky(A, upper=upper)."""
    return _linalg.cholesky_solve(input, L, upper=upper)


def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A from L = linalg.cholesky(A, upper=upper)."""
    one = _plugrad.eye(L.shape[-1], dtype=L.dtype, device=L.device).expand(*L.shape)
    return _linalg.cholesky_solve(one, L, upper=upper)


def triangular_solve(b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False,
                     unitriangular: bool = False) -> TriangularSolve:
    """The X with A X = b, or A^T X = b, for triangular A, and a copy of A. New code takes linalg.solve_triangular."""
    factor = A.transpose(-2, -1) if transpose else A
    solution = _linalg.solve_triangular(factor, b, upper=upper != transpose, unitriangular=unitriangular)
    return TriangularSolve(solution, A.clone())


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """The X with A X = b from linalg.lu_factor(A)."""
    return _linalg.lu_solve(LU_data, LU_pivots, b)


def _permutation(pivots: Tensor, size: int) -> Tensor:
    """The matrices P with A = P L U from the successive swaps of rows."""
    steps = pivots.shape[-1]
    rows = _plugrad.arange(0, size, dtype="i64", device=pivots.device).expand(*pivots.shape[:-1], size)
    for i in range(steps):
        other = pivots[..., i:i + 1].to("i64") - 1
        here, there = rows[..., i:i + 1], rows.gather(-1, other)
        rows = rows.scatter(-1, other, here).scatter(-1, _plugrad.full_like(other, i), there)
    return _plugrad.one_hot(rows, size).transpose(-2, -1)


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> LUUnpacked:
    """A = P L U from linalg.lu_factor(A); a part is empty if it is not requested."""
    m, n = LU_data.shape[-2:]
    k, empty = min(m, n), _plugrad.zeros(0, dtype=LU_data.dtype, device=LU_data.device)
    p = _permutation(LU_pivots, m).to(LU_data.dtype) if unpack_pivots else empty
    if not unpack_data:
        return LUUnpacked(p, empty, empty)
    one = _plugrad.eye(m, k, dtype=LU_data.dtype, device=LU_data.device)
    return LUUnpacked(p, LU_data[..., :k].tril(-1) + one, LU_data[..., :k, :].triu())
