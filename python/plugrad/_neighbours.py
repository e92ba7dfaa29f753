"""Neighbours among the numbers of a dtype."""

from . import _plugrad
from ._plugrad import Tensor


def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """Returns the numbers of the dtype that are next to input in the direction of other; input and other broadcast. Raises
    TypeError unless their dtype is floating."""
    dtype = _plugrad.promote_types(input.dtype, other.dtype)
    if not dtype.is_floating_point:
        raise TypeError(f"[nextafter] the dtypes are {input.dtype} and {other.dtype}: expected floating ones")
    return _next(*_plugrad.broadcast_tensors([input.to(dtype), other.to(dtype)]))


def _next(x: Tensor, towards: Tensor) -> Tensor:
    digits, bias = x.dtype._digits, 2 ** (x.dtype._exponent_bits - 1) - 1
    smallest, largest = 2.0 ** (2 - bias - digits), (2 - 2.0 ** (1 - digits)) * 2.0 ** bias
    size = x.abs().clamp(2.0 ** (1 - bias), largest)
    one = _plugrad.ones_like(x)
    exponent = size.log2().floor()  # rounded, it may be one too large or small
    exponent = exponent - (_plugrad.ldexp(one, exponent) > size).to(x.dtype)
    exponent = exponent + (_plugrad.ldexp(one, exponent) * 2 <= size).to(x.dtype)
    inwards = (towards > x) != (x > 0)
    # Below a power of two the distance is half of that above it.
    halved = (_plugrad.ldexp(one, exponent) == x.abs()) & inwards
    step = _plugrad.ldexp(one, exponent - (digits - 1) - halved.to(x.dtype)).clamp(min=smallest)
    moved = _plugrad.where(towards > x, x + step, x - step)
    moved = _plugrad.where(x == 0, _plugrad.copysign(_plugrad.full_like(x, smallest), towards), moved)
    moved = _plugrad.where(moved == 0, _plugrad.copysign(moved, x), moved)
    moved = _plugrad.where(_plugrad.isinf(x), _plugrad.sign(x) * largest, moved)
    moved = _plugrad.where(_plugrad.isnan(x) | _plugrad.isnan(towards), x + towards, moved)
    return _plugrad.where(x == towards, towards, moved)
