"""The types of several results of a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ._plugrad import Tensor


class ValuesIndices(NamedTuple):
    """Elements of a tensor, and their positions along a dim."""

    values: Tensor
    indices: Tensor


class MinMax(NamedTuple):
    """The smallest and the largest element."""

    min: Tensor
    max: Tensor


class Quantized(NamedTuple):
    """A weight (n, k) of 2, 4 or 8 bits an element: codes (n, k bits / 8), scales (n, groups, 1 or 2)."""

    codes: Tensor
    scales: Tensor
