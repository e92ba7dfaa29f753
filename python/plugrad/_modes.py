"""Context managers and decorators to switch recording and the search for NaN off and on."""

import threading
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


class inference_mode(no_grad):
    """The same as no_grad."""


_held = threading.local()  # guards: they keep this thread's mode, set by set_grad_enabled


def _set_recording(mode: bool) -> None:
    guards: list[Any] = vars(_held).setdefault("guards", [])
    if guards and _plugrad.grad_enabled() != mode:
        guards.pop()  # restores the mode before it
    if _plugrad.grad_enabled() != mode:
        guards.append(_plugrad._EnableGrad() if mode else _plugrad._NoGrad())


class set_grad_enabled:
    """Switches recording on or off for this thread, from the call on; in `with set_grad_enabled(mode):`, until its end."""

    def __init__(self, mode: bool) -> None:
        self._before = _plugrad.grad_enabled()
        _set_recording(mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _set_recording(self._before)


def _stack() -> str:
    return "".join(traceback.format_stack()[:-1])


class detect_anomaly(_Mode):
    """Inside `with detect_anomaly():`, a gradient that becomes NaN in a backward pass of this thread raises ValueError with
    the op, the shapes of its operands, and the line of the program's call. No gradient changes.

    forward: the same for an op with NaN in its result but not in its operands; only recorded ops are checked. All this is
    slow.
    """

    def __init__(self, forward: bool = True) -> None:
        super().__init__()
        self._forward = forward

    def _guard(self) -> Any:
        return _plugrad._DetectAnomaly(self._forward, _stack)

    def _recreate_cm(self) -> Self:
        return type(self)(self._forward)
