"""Context managers and decorators that switch recording off and on."""

from contextlib import ContextDecorator
from typing import Any, ClassVar, Self

from . import _plugrad


class _Mode(ContextDecorator):
    _guard: ClassVar[Any]

    def __init__(self) -> None:
        self._entered: list[Any] = []  # an instance may be entered again inside itself

    def __enter__(self) -> Self:
        self._entered.append(self._guard())
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.pop()

    def _recreate_cm(self) -> Self:
        return type(self)()  # decorated functions may run on several threads


class no_grad(_Mode):
    """Records nothing on this thread inside `with no_grad():`, or in a function with `@no_grad()`."""

    _guard = _plugrad._NoGrad


class enable_grad(_Mode):
    """Records again inside a no_grad."""

    _guard = _plugrad._EnableGrad
