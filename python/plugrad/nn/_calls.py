"""Modules that call a function."""

from collections.abc import Callable
from typing import Any

from .module import Module


class Calls(Module):
    """A module that calls a function of tensors. The constructor's arguments are stored as attributes and passed by name."""

    _function: Callable[..., Any]
    _arguments: tuple[str, ...] = ()
    _shown: int | None = None  # The number of arguments that repr() shows; None: all.

    def _keep(self, **arguments: Any) -> None:
        vars(self).update(arguments)
        self._arguments = tuple(arguments)

    def _kept(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._arguments}

    def forward(self, *tensors: Any, **named: Any) -> Any:
        return type(self)._function(*tensors, **named, **self._kept())

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in list(self._kept().items())[:self._shown])
