"""The functions of torch.masked. They compute over the elements where a mask is true, or over all elements without a mask.
The mask broadcasts to the tensor. A reduction over no elements returns 0 for sum, 1 for prod, -infinity for amax of floating
dtypes, and so on.

>>> from plugrad import masked, tensor
>>> masked.amax(tensor([3.0, 9.0]), mask=tensor([True, False]))
Tensor(3.)
"""

from collections.abc import Sequence
from math import inf as _inf, nan as _nan
from typing import Any

from . import _plugrad, linalg as _linalg
from ._plugrad import Tensor

_Dims = int | Sequence[int] | None
_LIMITS: dict[str, int] = {name: digits for name, _, _, kind, digits in _plugrad._dtype_names() if kind == "integer"}


def _in(x: Tensor, dtype: Any) -> Tensor:
    return x if dtype is None else x.to(dtype)


def _filled(x: Tensor, mask: Tensor | None, value: float) -> Tensor:
    return x if mask is None else x.masked_fill(_plugrad.logical_not(mask), value)


def _lowest(x: Tensor) -> float:
    if x.is_floating_point():
        return -_inf
    return -(2 ** _LIMITS[str(x.dtype)]) if str(x.dtype) in _LIMITS else 0


def _highest(x: Tensor) -> float:
    if x.is_floating_point():
        return _inf
    return {"u8": 255, "bool": 1}.get(str(x.dtype)) or 2 ** _LIMITS[str(x.dtype)] - 1


def _dims(dim: _Dims) -> int | Sequence[int]:
    return () if dim is None else dim


# --- Reductions.


def sum(input: Tensor, dim: _Dims = None, *, keepdim: bool = False, dtype: Any = None,
        mask: Tensor | None = None) -> Tensor:
    """The sum."""
    return _filled(_in(input, dtype), mask, 0).sum(_dims(dim), keepdim)


def prod(input: Tensor, dim: _Dims = None, *, keepdim: bool = False, dtype: Any = None,
         mask: Tensor | None = None) -> Tensor:
    """The product."""
    return _filled(_in(input, dtype), mask, 1).prod(_dims(dim), keepdim)


def amax(input: Tensor, dim: _Dims = None, *, keepdim: bool = False, dtype: Any = None,
         mask: Tensor | None = None) -> Tensor:
    """The largest element."""
    x = _in(input, dtype)
    return _filled(x, mask, _lowest(x)).amax(_dims(dim), keepdim)


def amin(input: Tensor, dim: _Dims = None, *, keepdim: bool = False, dtype: Any = None,
         mask: Tensor | None = None) -> Tensor:
    """The smallest element."""
    x = _in(input, dtype)
    return _filled(x, mask, _highest(x)).amin(_dims(dim), keepdim)


def argmax(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None,
           mask: Tensor | None = None) -> Tensor:
    """The position of the first largest element, in the dtype of the elements, as PyTorch returns it."""
    x = _in(input, dtype)
    return _filled(x, mask, _lowest(x)).argmax(_dims(dim), keepdim).to(x.dtype)


def argmin(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None,
           mask: Tensor | None = None) -> Tensor:
    """The position of the first smallest element, in the dtype of the elements."""
    x = _in(input, dtype)
    return _filled(x, mask, _highest(x)).argmin(_dims(dim), keepdim).to(x.dtype)


def _count(x: Tensor, mask: Tensor | None, dim: _Dims) -> Tensor:
    counted = _plugrad.ones_like(x.detach()) if mask is None else mask.expand(*x.shape).to(x.dtype)
    return counted.sum(_dims(dim), True)


def mean(input: Tensor, dim: _Dims = None, *, keepdim: bool = False, dtype: Any = None,
         mask: Tensor | None = None) -> Tensor:
    """The mean; NaN over no elements."""
    x = _in(input, dtype)
    result = sum(x, dim, keepdim=True, mask=mask) / _count(x, mask, dim)
    return result if keepdim else _without(result, dim)


def _without(x: Tensor, dim: _Dims) -> Tensor:
    """Removes the given axes, which have extents of 1."""
    return x.sum(_dims(dim)).to(x.dtype) if x.shape else x


def var(input: Tensor, dim: _Dims = None, unbiased: bool | None = None, *, correction: int | None = None,
        keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The variance: the sum of squared distances from the mean, divided by the number of elements less correction. The
    default correction is 1, or 0 if unbiased is False."""
    x = _in(input, dtype)
    less = correction if correction is not None else 0 if unbiased is False else 1
    centred = x - mean(x, dim, keepdim=True, mask=mask)
    squares = sum(centred * centred, dim, keepdim=True, mask=mask)
    result = squares / _plugrad.clamp(_count(x, mask, dim) - less, 0)
    return result if keepdim else _without(result, dim)


def std(input: Tensor, dim: _Dims = None, unbiased: bool | None = None, *, correction: int | None = None,
        keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The square root of var."""
    return var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask).sqrt()


def norm(input: Tensor, ord: float = 2.0, dim: _Dims = None, *, keepdim: bool = False, dtype: Any = None,
         mask: Tensor | None = None) -> Tensor:
    """The p-norm for p = ord."""
    return _linalg.vector_norm(_filled(_in(input, dtype), mask, 0 if ord >= 0 else _inf), ord, dim, keepdim)


def logsumexp(input: Tensor, dim: _Dims = None, *, keepdim: bool = False, dtype: Any = None,
              mask: Tensor | None = None) -> Tensor:
    """The logarithm of the sum of exponentials."""
    return _filled(_in(input, dtype), mask, -_inf).logsumexp(_dims(dim), keepdim)


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The lower of the middle elements in order, for floating dtypes; NaN over no elements."""
    return _filled(_in(input, dtype), mask, _nan).nanmedian(dim, keepdim).values


# --- Functions along an axis, which keep the shape.


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """e^x divided by its sum along dim; NaN along lines without elements."""
    return _filled(_in(input, dtype), mask, -_inf).softmax(dim)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of softmax."""
    return _filled(_in(input, dtype), mask, -_inf).log_softmax(dim)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """softmax(-x)."""
    return _plugrad.softmin(_filled(_in(input, dtype), mask, _inf), dim)


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The sum of all elements up to each position."""
    return _filled(_in(input, dtype), mask, 0).cumsum(dim)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The product of all elements up to each position."""
    return _filled(_in(input, dtype), mask, 1).cumprod(dim)


def normalize(input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None,
              mask: Tensor | None = None) -> Tensor:
    """The elements divided by the larger of their p-norm, p = ord, and eps; 0 where the mask is false."""
    x = _in(input, dtype)
    return _filled(x, mask, 0) / _plugrad.clamp(norm(x, ord, dim, keepdim=True, mask=mask), eps)


def logaddexp(input: Tensor, other: Tensor, *, dtype: Any = None, input_mask: Tensor | None = None,
              other_mask: Tensor | None = None) -> Tensor:
    """ln(e^input + e^other). An element counts as -infinity where its mask is false."""
    return _plugrad.logaddexp(_filled(_in(input, dtype), input_mask, -_inf), _filled(_in(other, dtype), other_mask, -_inf))
