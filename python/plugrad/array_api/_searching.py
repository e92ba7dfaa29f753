"""Searching, sorting and indexing."""

from math import prod
from typing import Any

from .. import _plugrad
from .._plugrad import Tensor

__all__ = ["argmax", "argmin", "argsort", "nonzero", "searchsorted", "sort", "take", "take_along_axis", "where"]


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index, i64, of the first of the largest elements along an axis, or among all elements. NaN is the largest."""
    return _plugrad.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index, i64, of the first of the smallest elements along an axis, or among all elements. NaN is the smallest."""
    return _plugrad.argmin(x, axis, keepdims)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """x1 where the condition is true and x2 elsewhere; the three arguments broadcast. Either x1 or x2 may be a number."""
    return _plugrad.where(condition, x1, x2)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The positions of the elements that are not 0, in row-major order: one tensor of i64 for each axis. Raises ValueError
    for rank 0. Waits for the device."""
    if not x.ndim:
        raise ValueError("[nonzero] a tensor of rank 0 has no positions: compare it with 0")
    flat = (x if x.dtype == "bool" else x != 0).flatten()
    chosen: Tensor = _plugrad.arange(x.numel(), device=x.device)[flat]
    return tuple(chosen // max(prod(x.shape[i + 1:]), 1) % max(x.shape[i], 1) for i in range(x.ndim))


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """x in order along an axis. NaN is larger than every number."""
    return _plugrad.sort(x, axis, descending=descending, stable=stable).values


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The positions that sort x along an axis; i64. Equal elements keep their order even if stable is False."""
    return _plugrad.argsort(x, axis, descending=descending, stable=stable)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The parts of x at the indices along an axis; negative indices count from the end. axis may be omitted if x has a
    single axis. Raises ValueError for a missing axis, and IndexError for an index out of range."""
    if axis is None and x.ndim != 1:
        raise ValueError(f"[take] a tensor of {x.ndim} axes needs an axis")
    before = (axis or 0) % x.ndim
    taken: Tensor = x[(slice(None),) * before + (indices,)]
    return taken


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """out[.., i, ..] = x[.., indices[.., i, ..], ..] along the axis; the other axes broadcast. Negative indices count from
    the end. Raises IndexError for an index out of range."""
    axis %= x.ndim
    ours, theirs = list(x.shape), list(indices.shape)
    ours[axis] = theirs[axis] = 1
    shape = list(_plugrad.broadcast_shapes(ours, theirs))
    along = shape[:axis], shape[axis + 1:]
    wide = x.expand([*along[0], x.shape[axis], *along[1]])
    index = indices.to(dtype="i64").expand([*along[0], indices.shape[axis], *along[1]])
    return wide.gather(axis, _plugrad.where(index < 0, index + wide.shape[axis], index))


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """The positions, i64, at which inserting the elements of x2 keeps x1, of rank 1, sorted: before equal elements, or after
    equal elements if side is "right". sorter: the positions that sort an unsorted x1."""
    return _plugrad.searchsorted(x1 if sorter is None else take(x1, sorter), x2, side=side)
