"""Context managers and decorators that switch recording and the search for NaN off and on."""

import traceback
from contextlib import ContextDecorator
from typing import Any, ClassVar, Self

from . import _plugrad


class _Mode(ContextDecorator):
    _guard: ClassVar[Any]

    def __init__(self, *given: object) -> None:
        if given:
            name = type(self).__name__
            raise TypeError(f"[{name}] takes no argument: write `with {name}():`, or `@{name}()` above a function")
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


def _stack() -> str:
    return "".join(traceback.format_stack()[:-1])


class detect_anomaly(_Mode):
    """Inside `with detect_anomaly():`, gradients that become NaN in backward passes of this thread raise ValueError, which
    names the op, the shapes of its operands, and where the program called it. No gradient changes.

    forward: the same for an op whose result has NaN although no operand has; only recorded ops are looked at. All this is
    slow.
    """

    def __init__(self, forward: bool = True) -> None:
        super().__init__()
        self._forward = forward

    def _guard(self) -> Any:
        return _plugrad._DetectAnomaly(self._forward, _stack)

    def _recreate_cm(self) -> Self:
        return type(self)(self._forward)
