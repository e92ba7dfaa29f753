"""What the namespace can do, as the standard asks for it."""

from typing import Any

from .. import _plugrad
from .._plugrad import Device, DType
from ._dtypes import _KINDS

_MAX_RANK = 8


class _Info:
    """The functions that describe the namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Which optional parts there are, and the highest rank of a tensor."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": _MAX_RANK}

    def default_device(self) -> Device:
        """The device of tensors that are given none."""
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
        """The dtypes of tensors that are given none. There are no complex ones."""
        return {"real floating": DType("f32"), "integral": DType("i64"), "indexing": DType("i64")}

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The standard's dtypes of these kinds, or all. Every device has all of them."""
        kinds = ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        return {name: DType(name) for each in kinds for name in _KINDS[each]}


def __array_namespace_info__() -> _Info:
    """Describes the namespace: its devices, dtypes and limits."""
    return _Info()
