"""Distinct elements, in order. NaN does not equal NaN, so each NaN is distinct. All functions wait for the device."""

from typing import NamedTuple

from .. import _plugrad
from .._plugrad import Tensor

__all__ = ["unique_all", "unique_counts", "unique_inverse", "unique_values"]


class _All(NamedTuple):
    """The result of unique_all."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class _Counts(NamedTuple):
    """The result of unique_counts."""

    values: Tensor
    counts: Tensor


class _Inverse(NamedTuple):
    """The result of unique_inverse."""

    values: Tensor
    inverse_indices: Tensor


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements of x."""
    values: Tensor = _plugrad.unique(x)
    return values


def unique_counts(x: Tensor, /) -> _Counts:
    """The distinct elements of x, and the number of times that each occurs; i64."""
    return _Counts(*_plugrad.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> _Inverse:
    """The distinct elements of x, and for each element of x its index among the distinct elements; i64."""
    return _Inverse(*_plugrad.unique(x, return_inverse=True))


def unique_all(x: Tensor, /) -> _All:
    """The distinct elements of x (values); the position in the flattened x at which each distinct element first occurs
    (indices); the index in values of each element of x (inverse_indices); and the number of times that each distinct element
    occurs (counts). indices, inverse_indices and counts are i64."""
    values, inverse, counts = _plugrad.unique(x, return_inverse=True, return_counts=True)
    order = _plugrad.argsort(inverse.flatten(), stable=True)
    first: Tensor = order[_plugrad.cumsum(counts, 0) - counts]
    return _All(values, first, inverse, counts)
