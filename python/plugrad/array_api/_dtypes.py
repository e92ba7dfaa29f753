"""Dtypes: their ranges, kinds and promotion."""

from dataclasses import dataclass
from typing import Any

from .._plugrad import DType, Tensor, _dtype_names, promote_types

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

# The standard's dtypes of each kind, for dtypes() and isdtype(). Only plugrad has the floating dtypes in _HALVES.
_INTEGERS = sorted((digits, name, kind) for _, name, _, kind, digits in _dtype_names() if kind in ("integer", "unsigned"))
_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",), "signed integer": tuple(name for _, name, kind in _INTEGERS if kind == "integer"),
    "unsigned integer": tuple(name for _, name, kind in _INTEGERS if kind == "unsigned"),
    "real floating": ("float32", "float64"), "complex floating": ("complex64", "complex128")}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]
_HALVES = ("float16", "bfloat16")


@dataclass(frozen=True)
class _FloatInfo:
    """The result of finfo. The attributes tiny and resolution are those of PyTorch."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    tiny: float
    resolution: float
    dtype: DType


@dataclass(frozen=True)
class _IntInfo:
    """The result of iinfo."""

    bits: int
    max: int
    min: int
    dtype: DType


def _dtype_of(given: Any) -> DType:
    return given.dtype if isinstance(given, Tensor) else DType(given)


def finfo(type: Any, /) -> _FloatInfo:
    """The limits of a floating dtype, of the parts of a complex dtype, or of a tensor's dtype. Raises TypeError for other
    dtypes."""
    dtype = _dtype_of(type)
    if dtype.is_complex:
        dtype = DType("f32" if dtype == "c64" else "f64")
    if not dtype.is_floating_point:
        raise TypeError(f"[finfo] {dtype} is not a floating dtype: use iinfo for integers")
    eps, exponent = 2.0 ** (1 - dtype._digits), 2 ** (dtype._exponent_bits - 1) - 1
    largest, smallest = (2 - eps) * 2.0 ** exponent, 2.0 ** (1 - exponent)
    resolution = 10.0 ** -int((dtype._digits - 1) * 0.30103)
    return _FloatInfo(8 * dtype.itemsize, eps, largest, -largest, smallest, smallest, resolution, dtype)


def iinfo(type: Any, /) -> _IntInfo:
    """The limits of an integer dtype, or of a tensor's dtype. Raises TypeError for other dtypes."""
    dtype = _dtype_of(type)
    if dtype.is_floating_point or dtype.is_complex or dtype == "bool":
        raise TypeError(f"[iinfo] {dtype} is not an integer dtype: use finfo for floating ones")
    largest: int = 2 ** dtype._digits - 1
    return _IntInfo(8 * dtype.itemsize, largest, -largest - 1 if dtype.is_signed else 0, dtype)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Returns whether a dtype is of a kind: "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating" or "numeric". kind may also be a dtype, or a tuple of kinds and dtypes, any of which may match."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if kind in ("real floating", "numeric") and dtype in _HALVES:
        return True
    if isinstance(kind, str) and kind in _KINDS and kind != "bool":
        return any(dtype == each for each in _KINDS[kind])
    return bool(DType(dtype) == DType(kind))


def can_cast(from_: Any, to: Any, /) -> bool:
    """Returns whether promotion converts a dtype, or the dtype of a tensor, to the dtype `to`."""
    return bool(promote_types(_dtype_of(from_), to) == DType(to))


def _with_number(dtype: DType, number: Any) -> DType:
    """Returns the dtype of an op on a tensor of this dtype and a number."""
    if isinstance(number, complex):
        return promote_types(dtype, "c64")
    if dtype.is_floating_point or dtype.is_complex or isinstance(number, bool):
        return dtype
    return DType("f32") if isinstance(number, float) else promote_types(dtype, "i64") if dtype == "bool" else dtype


def _of_number(number: Any) -> DType:
    kinds = {bool: "bool", int: "i64", complex: "c64"}
    return DType(next((name for kind, name in kinds.items() if isinstance(number, kind)), "f32"))


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype of an op on these tensors, dtypes and numbers. Numbers take the dtype of the tensors and dtypes, but a
    fraction together with integers gives f32, and a complex number a complex dtype. Raises TypeError for no arguments."""
    if not arrays_and_dtypes:
        raise TypeError("[result_type] at least one tensor, dtype or number is expected")
    numbers = [each for each in arrays_and_dtypes if isinstance(each, (bool, int, float, complex))]
    dtypes = [_dtype_of(each) for each in arrays_and_dtypes if not isinstance(each, (bool, int, float, complex))]
    if not dtypes:
        dtypes, numbers = [_of_number(each) for each in numbers], []
    dtype = dtypes[0]
    for each in dtypes[1:]:
        dtype = promote_types(dtype, each)
    for number in numbers:
        dtype = _with_number(dtype, number)
    return dtype


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Converts x to a dtype, on the same or another device. copy=False returns x itself if neither dtype nor
    device changes. Gradients
    flow between floating dtypes. Raises TypeError for a complex x and a real dtype."""
    if x.dtype.is_complex and not DType(dtype).is_complex and DType(dtype) != "bool":
        raise TypeError(f"[astype] x is {x.dtype}: take real(x) or imag(x) first")
    return x.to(dtype=dtype, device=device, copy=copy)
