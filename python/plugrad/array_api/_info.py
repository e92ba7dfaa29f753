"""The functions by which the standard describes a namespace."""

from typing import Any

from .. import _plugrad
from .._plugrad import Device, DType
from ._dtypes import _KINDS

_MAX_RANK = 8


class _Info:
    """The functions that describe the namespace."""

    def capabilities(self) -> dict[str, Any]:
        """The optional parts that the namespace has, and the highest rank of a tensor."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": _MAX_RANK}

    def default_device(self) -> Device:
        """The device of new tensors without a given device."""
        return _plugrad.default_device()

    def devices(self) -> list[Device]:
        """All devices that can be opened."""
        found = []
        for name in _plugrad.devices():
            try:
                found.append(Device(name))
            except (OSError, RuntimeError):
                continue
        return found

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtypes of new tensors without a given dtype."""
        return {"real floating": DType("f32"), "complex floating": DType("c64"), "integral": DType("i64"),
                "indexing": DType("i64")}

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The standard's dtypes of these kinds, or of all kinds. They are the same for every device."""
        kinds = ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        return {name: DType(name) for each in kinds for name in _KINDS[each]}


def __array_namespace_info__() -> _Info:
    """Returns an object that describes the devices, dtypes and limits of the namespace."""
    return _Info()
