"""Products of matrices and vectors."""

from typing import Any

from .. import _plugrad
from .._plugrad import Tensor, matmul

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two axes swapped; a view."""
    return x.mT


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sum of products along an axis, which is counted from the end; the other axes broadcast. The products are of
    conjugates of x1. Raises ValueError if the extents along the axis differ."""
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"[vecdot] the extents of axis {axis} differ: shapes {x1.shape} and {x2.shape}")
    products = x1.conj() * x2
    return _plugrad.sum(products, axis, dtype=products.dtype)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """The sum of products over the last `axes` axes of x1 and the first `axes` axes of x2, or over two sequences of axes."""
    return _plugrad.tensordot(x1, x2, axes)
