"""Statistics, truth values and running sums."""

from collections.abc import Callable, Sequence
from typing import Any

from .. import _plugrad
from .._plugrad import Tensor

__all__ = ["all", "any", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std",
           "sum", "var"]

_Axes = int | Sequence[int] | None


def _reduced(function: Callable[..., Tensor], x: Tensor, axis: _Axes, keepdims: bool, **named: Any) -> Tensor:
    """Reduces over the axes, or over all axes for None. axis=() reduces each element alone, whereas () in the core means all
    axes."""
    if axis is None:
        return function(x, keepdims=keepdims, **named)
    if axis == () and x.ndim:
        return function(x.unsqueeze(-1), axis=-1, **named)
    return function(x, axis=axis, keepdims=keepdims, **named)


def _in(dtype: Any) -> dict[str, Any]:
    return {} if dtype is None else {"dtype": dtype}


def sum(x: Tensor, /, *, axis: _Axes = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over axes, or over all axes. Without a dtype, sums of bools and integers are i64."""
    return _reduced(_plugrad.sum, x, axis, keepdims, **_in(dtype))


def prod(x: Tensor, /, *, axis: _Axes = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product over axes, or over all axes. Without a dtype, products of bools and integers are i64."""
    return _reduced(_plugrad.prod, x, axis, keepdims, **_in(dtype))


def mean(x: Tensor, /, *, axis: _Axes = None, keepdims: bool = False) -> Tensor:
    """The mean over axes, or over all axes."""
    return _reduced(_plugrad.mean, x, axis, keepdims)


def max(x: Tensor, /, *, axis: _Axes = None, keepdims: bool = False) -> Tensor:
    """The largest element over axes, or over all axes. Raises ValueError for no elements."""
    return _reduced(_plugrad.max, x, axis, keepdims)


def min(x: Tensor, /, *, axis: _Axes = None, keepdims: bool = False) -> Tensor:
    """The smallest element over axes, or over all axes. Raises ValueError for no elements."""
    return _reduced(_plugrad.min, x, axis, keepdims)


def var(x: Tensor, /, *, axis: _Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance: the sum of squared distances from the mean, divided by the number of elements less correction.
    The default of PyTorch and of plugrad.var is correction=1."""
    return _reduced(_plugrad.var, x, axis, keepdims, correction=correction)


def std(x: Tensor, /, *, axis: _Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The square root of var."""
    return _reduced(_plugrad.std, x, axis, keepdims, correction=correction)


def all(x: Tensor, /, *, axis: _Axes = None, keepdims: bool = False) -> Tensor:
    """True where all elements over axes, or over all axes, are true; bool."""
    return _reduced(_plugrad.all, x, axis, keepdims)


def any(x: Tensor, /, *, axis: _Axes = None, keepdims: bool = False) -> Tensor:
    """True where any element over axes, or over all axes, is true; bool."""
    return _reduced(_plugrad.any, x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: _Axes = None, keepdims: bool = False) -> Tensor:
    """The number of elements that are not 0, over axes or over all axes; i64."""
    return _reduced(_plugrad.count_nonzero, x, axis, keepdims)


def _only_axis(x: Tensor, axis: int | None, name: str) -> int:
    if axis is not None:
        return axis
    if x.ndim != 1:
        raise ValueError(f"[{name}] a tensor of {x.ndim} axes needs an axis")
    return 0


def _with_initial(running: Tensor, axis: int, value: int) -> Tensor:
    shape = list(running.shape)
    shape[axis] = 1
    return _plugrad.cat([_plugrad.full(shape, value, dtype=running.dtype, device=running.device), running], axis)


def cumulative_sum(x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """The sum of all elements up to each position along an axis. axis may be omitted if x has a single axis. With
    include_initial the result begins with 0. Without a dtype, sums of bools and integers are i64. Raises ValueError for a
    missing axis."""
    along = _only_axis(x, axis, "cumulative_sum")
    running = _plugrad.cumsum(x, along, **_in(dtype))
    return _with_initial(running, along, 0) if include_initial else running


def cumulative_prod(x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """The product of all elements up to each position; with include_initial it begins with 1. See cumulative_sum."""
    along = _only_axis(x, axis, "cumulative_prod")
    running = _plugrad.cumprod(x, along, **_in(dtype))
    return _with_initial(running, along, 1) if include_initial else running


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None,
         append: Tensor | None = None) -> Tensor:
    """The differences between neighbours along an axis, taken n times. prepend and append are joined to x first. For bools
    the result is true where neighbours differ."""
    return _plugrad.diff(x, n, axis, prepend, append)
