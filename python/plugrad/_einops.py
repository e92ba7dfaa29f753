"""A backend for einops: its functions take tensors, whether einops is imported before plugrad or after it.

einops asks each class derived from its AbstractBackend for the tensors it serves. AbstractBackend exists only after the
import of einops, so this module waits for the import.
"""

import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any

from . import _plugrad
from ._plugrad import Tensor

_NAME = "einops._backends"


class _Methods:
    """The methods of a backend of einops."""

    framework_name = "plugrad"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, Tensor)

    def from_numpy(self, x: Any) -> Tensor:
        return _plugrad.Tensor(x)

    def to_numpy(self, x: Tensor) -> Any:
        return x.detach().numpy()

    def arange(self, start: int, stop: int) -> Tensor:
        return _plugrad.arange(start, stop, dtype="i64")

    def reduce(self, x: Tensor, operation: str, axes: Any) -> Any:
        if operation in ("min", "max"):
            return getattr(x, f"a{operation}")(dim=tuple(axes))
        if operation in ("sum", "mean", "any", "all"):
            return getattr(x, operation)(dim=tuple(axes))
        if operation != "prod":
            raise NotImplementedError(f"[einops] there is no reduction '{operation}'")
        for axis in sorted(axes, reverse=True):
            x = x.prod(dim=axis)
        return x

    def transpose(self, x: Tensor, axes: Any) -> Tensor:
        return x.permute(*axes)

    def stack_on_zeroth_dimension(self, tensors: list[Tensor]) -> Tensor:
        return _plugrad.stack(tensors)

    def add_axes(self, x: Tensor, n_axes: int, pos2len: dict[int, int]) -> Tensor:
        for position in pos2len:
            x = x.unsqueeze(position)
        return x.expand(*(pos2len.get(i, x.shape[i]) for i in range(n_axes)))

    def tile(self, x: Tensor, repeats: Any) -> Tensor:
        return x.tile(tuple(repeats))

    def concat(self, tensors: list[Tensor], axis: int) -> Tensor:
        return _plugrad.cat(tensors, axis)

    def add_axis(self, x: Tensor, new_position: int) -> Tensor:
        return x.unsqueeze(new_position)

    def is_float_type(self, x: Tensor) -> bool:
        return x.is_floating_point()

    def einsum(self, pattern: str, *x: Tensor) -> Tensor:
        return _plugrad.einsum(pattern, *x)


def _define(module: Any) -> None:
    """Derives the backend in einops' own module. The module keeps the class, and einops finds it among the subclasses."""
    module.PlugradBackend = type("PlugradBackend", (_Methods, module.AbstractBackend), {})


class _Loader(importlib.abc.Loader):
    """Another loader; the backend is defined once it has run the module."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: Any) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _define(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds einops' module as the usual finders do, once, and has it loaded by _Loader."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname != _NAME:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def serve() -> None:
    """Defines the backend now, or when einops is imported."""
    if _NAME in sys.modules:
        _define(sys.modules[_NAME])
    else:
        sys.meta_path.insert(0, _Finder())
