"""Elementwise functions. Functions of two tensors also take a number in place of one tensor. The number takes the dtype of
the tensor, but a fraction together with integers gives f32."""

from collections.abc import Callable
from operator import (add, and_ as bitwise_and, eq as equal, floordiv as floor_divide, ge as greater_equal, gt as greater,
                      invert as bitwise_invert, le as less_equal, lshift as bitwise_left_shift, lt as less,
                      mod as remainder, mul as multiply, ne as not_equal, neg as negative, or_ as bitwise_or,
                      pos as positive, pow, rshift as bitwise_right_shift, sub as subtract, truediv as divide,
                      xor as bitwise_xor)
from typing import Any

from .. import _plugrad
from .._plugrad import (Tensor, abs, acos, acosh, asin, asinh, atan, atanh, ceil, conj, cos, cosh, exp, expm1, floor,
                        isfinite, isinf, isnan, log, log1p, log2, log10, logical_not, real, reciprocal, round, sign,
                        signbit, sin, sinh, sqrt, square, tan, tanh, trunc)
from .._neighbours import nextafter as _nextafter
from ._dtypes import result_type

__all__ = ["abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
           "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj", "copysign",
           "cos", "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater", "greater_equal", "hypot",
           "imag", "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp",
           "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
           "nextafter", "not_equal", "positive", "pow", "real", "reciprocal", "remainder", "round", "sign", "signbit",
           "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc"]


def _beside(x: Any, other: Any) -> Any:
    """Returns the number x as a tensor with a dtype and device that fit the other operand; returns a tensor x unchanged."""
    if isinstance(x, Tensor) or not isinstance(other, Tensor):
        return x
    return _plugrad.full((), x, dtype=result_type(other, x), device=other.device)


def _of_two(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Any, Any], Tensor]:
    """Returns the function, extended to take a number in place of either tensor."""

    def taking_numbers(x1: Any, x2: Any, /) -> Tensor:
        return function(_beside(x1, x2), _beside(x2, x1))

    taking_numbers.__name__ = taking_numbers.__qualname__ = function.__name__
    taking_numbers.__doc__ = function.__doc__
    return taking_numbers


atan2 = _of_two(_plugrad.atan2)
copysign = _of_two(_plugrad.copysign)
hypot = _of_two(_plugrad.hypot)
logaddexp = _of_two(_plugrad.logaddexp)
logical_and = _of_two(_plugrad.logical_and)
logical_or = _of_two(_plugrad.logical_or)
logical_xor = _of_two(_plugrad.logical_xor)
maximum = _of_two(_plugrad.maximum)
minimum = _of_two(_plugrad.minimum)
nextafter = _of_two(_nextafter)


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """x limited to [min, max]. The bounds are numbers or tensors that broadcast; None means no bound. The result has the
    dtype of x."""
    limited = x
    if min is not None:
        limited = maximum(limited, min)
    if max is not None:
        limited = minimum(limited, max)
    return limited.to(dtype=x.dtype)


def imag(x: Tensor, /) -> Tensor:
    """The imaginary part; zeros for a real x."""
    return x.imag if x.dtype.is_complex else _plugrad.zeros_like(x)
