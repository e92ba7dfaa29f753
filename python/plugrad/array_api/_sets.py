"""Distinct elements. They are sorted; NaN equals nothing, so each NaN is distinct. All functions wait for the device."""

from typing import NamedTuple

from .. import _plugrad
from .._plugrad import Tensor

__all__ = ["unique_all", "unique_counts", "unique_inverse", "unique_values"]


class _All(NamedTuple):
    """What unique_all returns."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class _Counts(NamedTuple):
    """What unique_counts returns."""

    values: Tensor
    counts: Tensor


class _Inverse(NamedTuple):
    """What unique_inverse returns."""

    values: Tensor
    inverse_indices: Tensor


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements of x."""
    values: Tensor = _plugrad.unique(x)
    return values


def unique_counts(x: Tensor, /) -> _Counts:
    """The distinct elements of x, and how often each occurs; i64."""
    return _Counts(*_plugrad.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> _Inverse:
    """The distinct elements of x, and for each element of x its place among them; i64."""
    return _Inverse(*_plugrad.unique(x, return_inverse=True))


def unique_all(x: Tensor, /) -> _All:
    """The distinct elements of x; the position in the flattened x at which each occurs first; for each element of x its
    place among them; and how often each occurs. All but the first are i64."""
    values, inverse, counts = _plugrad.unique(x, return_inverse=True, return_counts=True)
    order = _plugrad.argsort(inverse.flatten(), stable=True)
    first: Tensor = order[_plugrad.cumsum(counts, 0) - counts]
    return _All(values, first, inverse, counts)
