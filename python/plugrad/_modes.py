"""Recording on and off, as context managers and decorators."""

from contextlib import ContextDecorator

from . import _plugrad


class _Mode(ContextDecorator):
    def __init__(self):
        self._entered = []  # one may be entered again inside itself

    def __enter__(self):
        self._entered.append(self._guard())
        return self

    def __exit__(self, *_):
        self._entered.pop()

    def _recreate_cm(self):
        return type(self)()  # decorated functions may run on several threads


class no_grad(_Mode):
    """Nothing is recorded on this thread inside: `with no_grad():`, or `@no_grad()` on a function."""

    _guard = _plugrad._NoGrad


class enable_grad(_Mode):
    """Recording on again, inside a no_grad."""

    _guard = _plugrad._EnableGrad
