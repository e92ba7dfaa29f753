"""The standard's linear algebra. The last two axes are matrices, the leading axes are a batch. plugrad.linalg follows
PyTorch."""

from collections.abc import Sequence
from typing import Any

from .. import linalg as _linalg
from .._plugrad import Tensor, broadcast_tensors, outer
from ..linalg import EighResult, QRResult, SlogdetResult, SVDResult, det, inv, slogdet, svdvals
from ._linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from ._manipulation import broadcast_shapes

__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
           "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
           "trace", "vecdot", "vector_norm"]


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The lower triangular L with x = L L^T, or the transpose of L with `upper`. Raises LinAlgError, a ValueError, if x is
    not positive definite."""
    return _linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product along an axis of extent 3, which is counted from the end; the other axes broadcast."""
    if x1.shape != x2.shape and x1.shape[axis] == x2.shape[axis]:
        x1, x2 = broadcast_tensors([x1, x2])
    return _linalg.cross(x1, x2, axis=axis)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The elements for which column - row == offset."""
    return _linalg.diagonal(x, offset=offset)


def eigh(x: Tensor, /) -> EighResult:
    """The eigenvalues, ascending, and orthonormal eigenvectors of symmetric matrices."""
    return _linalg.eigh(x)


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues, ascending, of symmetric matrices."""
    return _linalg.eigvalsh(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of matrices. ord: "fro", "nuc", 1, 2, infinity, -1, -2 or -infinity."""
    return _linalg.matrix_norm(x, ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Square matrices to the power n; a negative n takes powers of the inverse."""
    return _linalg.matrix_power(x, n)


def _cutoff(singular: Tensor, rtol: Tensor) -> Tensor:
    """Returns rtol, a number for each matrix, times the largest singular value of the matrix."""
    return rtol.unsqueeze(-1) * singular.max(axis=-1, keepdims=True)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The number of singular values above rtol times the largest singular value; i64. rtol is max(m, n) times the epsilon of
    the dtype by default."""
    if isinstance(rtol, Tensor):
        singular = svdvals(x)
        return (singular > _cutoff(singular, rtol)).sum(-1)
    return _linalg.matrix_rank(x, rtol=rtol)


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The pseudoinverse. Singular values up to rtol times the largest singular value count as 0; see matrix_rank."""
    if not isinstance(rtol, Tensor):
        return _linalg.pinv(x, rtol=rtol)
    left, singular, right = _linalg.svd(x, full_matrices=False)
    kept = singular > _cutoff(singular, rtol)
    inverse: Tensor = (1 / singular.masked_fill(~kept, 1)).masked_fill(~kept, 0)
    product: Tensor = (right.mT * inverse.unsqueeze(-2)) @ left.mT
    return product


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """x = Q R with orthonormal columns of Q and upper triangular R. mode: "reduced" or "complete"."""
    return _linalg.qr(x, mode)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution x of x1 x = x2 for square x1. An x2 of rank 1 is a vector; an x2 of higher rank is a batch of
    matrices."""
    if x2.ndim > 1:
        x2 = x2.expand([*broadcast_shapes(x1.shape[:-2], x2.shape[:-2]), *x2.shape[-2:]])
    return _linalg.solve(x1, x2)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """x = U diag(S) Vh with orthonormal columns of U, orthonormal rows of Vh, and descending S."""
    return _linalg.svd(x, full_matrices)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of diagonal(x, offset=offset). Without a dtype, sums of integers are i64."""
    elements = diagonal(x, offset=offset)
    return elements.sum(-1) if dtype is None else elements.sum(-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: int | Sequence[int] | None = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """The p-norm, p = ord, along axes or of all elements; axis=() gives that of each element."""
    if axis == ():
        return _linalg.vector_norm(x.unsqueeze(-1), ord, axis=-1)
    return _linalg.vector_norm(x, ord, axis=axis, keepdims=keepdims)
