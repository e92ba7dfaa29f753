"""Comparisons for tests."""

from collections.abc import Mapping, Sequence
from typing import Any

from . import _plugrad
from ._plugrad import Tensor

__all__ = ["assert_close"]

_TOLERANCES = {"f16": (1e-3, 1e-5), "bf16": (1.6e-2, 1e-5), "f32": (1.3e-6, 1e-5), "f64": (1e-7, 1e-7)}  # PyTorch's


def assert_close(actual: Any, expected: Any, *, rtol: float | None = None, atol: float | None = None,
                 equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True,
                 msg: str | None = None) -> None:
    """Raises AssertionError with the worst element unless |actual - expected| <= atol + rtol |expected| everywhere.

    Both may be tensors, numbers, or lists and dicts of them. The default tolerances depend on the dtype, and are the larger
    of the tolerances of two dtypes; integers must be equal.
    """
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            raise AssertionError(msg or f"the keys differ: {sorted(map(str, actual))} and {sorted(map(str, expected))}")
        pairs = [(actual[key], expected[key]) for key in actual]
    elif isinstance(actual, Sequence) and isinstance(expected, Sequence):
        if len(actual) != len(expected):
            raise AssertionError(msg or f"the lengths differ: {len(actual)} and {len(expected)}")
        pairs = list(zip(actual, expected))
    else:
        return _compare(actual, expected, rtol, atol, equal_nan, check_device, check_dtype, msg)
    for a, b in pairs:
        assert_close(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=check_device, check_dtype=check_dtype,
                     msg=msg)


def _compare(actual: Any, expected: Any, rtol: float | None, atol: float | None, equal_nan: bool, check_device: bool,
             check_dtype: bool, msg: str | None) -> None:
    if (rtol is None) != (atol is None):
        raise ValueError("[assert_close] give both rtol and atol, or neither")
    numbers = not isinstance(actual, Tensor) and not isinstance(expected, Tensor)
    dtype = "f64" if numbers else None
    a, b = (each.detach() if isinstance(each, Tensor) else Tensor(each, dtype=dtype, requires_grad=False)
            for each in (actual, expected))
    for what, one, other, matters in (("shape", a.shape, b.shape, True), ("dtype", a.dtype, b.dtype, check_dtype),
                                      ("device", a.device, b.device, check_device)):
        if matters and one != other:
            raise AssertionError(msg or f"the {what}s differ: {one} and {other}")
    b = b.to(a.device)
    bounds = [_TOLERANCES.get(str(each.dtype), (0.0, 0.0)) for each in (a, b)]
    relative = max(each[0] for each in bounds) if rtol is None else rtol
    absolute = max(each[1] for each in bounds) if atol is None else atol
    close = _plugrad.isclose(a, b, relative, absolute, equal_nan)
    if bool(close.all()):
        return
    flat = close.flatten()
    at = int(flat.to("i64").argmin())
    place: list[int] = []
    for extent in reversed(a.shape):
        place.insert(0, at % extent)
        at //= extent
    first, second = (each[tuple(place)].item() for each in (a, b))
    wrong = flat.numel() - int(flat.to("i64").sum())
    raise AssertionError(msg or f"{wrong} of {flat.numel()} elements differ by more than {absolute} + {relative} times the "
                         f"expected one; the first, at {tuple(place)}, is {first} instead of {second}")
