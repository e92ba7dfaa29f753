"""Searching, sorting, sets and indexing."""

from typing import Any

from .. import _plugrad
from .._plugrad import Tensor, argmax, argmin

__all__ = ["argmax", "argmin", "where"]


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """x1 where the condition is true and x2 elsewhere; all three broadcast. One of x1 and x2 may be a number."""
    return _plugrad.where(condition, x1, x2)
