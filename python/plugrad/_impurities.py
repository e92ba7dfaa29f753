"""Calls of a function whose results a recording cannot repeat: clocks, random numbers of Python, files, the environment."""

import contextvars
import io
import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from types import FrameType, FunctionType
from typing import Any

from . import _plugrad

_CLOCKS = frozenset(["time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
                     "process_time_ns", "thread_time", "thread_time_ns", "localtime", "gmtime", "ctime"])
_OF_THE_SYSTEM = frozenset(["urandom", "getrandom", "listdir", "scandir", "stat", "lstat", "getcwd", "open", "read"])
_ENVIRONMENT = type(os.environ).__getitem__.__code__
# These look at clocks and files for messages, and for the order of threads: no result depends on them.
_QUIET = frozenset(["logging", "warnings", "traceback", "linecache", "threading", "queue", "importlib", "tokenize"])


def _why(called: Any) -> str:
    """Why a builtin function gives another result each time; empty if it does not."""
    owner, name = getattr(called, "__self__", None), getattr(called, "__name__", "")
    module = getattr(owner, "__name__", "")
    if module == "time" and name in _CLOCKS or isinstance(owner, type) and issubclass(owner, date) and \
            name in ("now", "today", "utcnow"):
        return f"the clock ({name})"
    if owner is _RANDOM:
        return f"random numbers that are not plugrad's ({name})"
    if module in ("posix", "nt") and name in _OF_THE_SYSTEM:
        return f"the system ({name})"
    if module in ("builtins", "io", "_io") and name in ("open", "input") or \
            isinstance(owner, io.IOBase) and name.startswith("read"):
        return f"a file ({name})"
    if isinstance(owner, contextvars.ContextVar) and name == "get":
        return f"a context variable ({owner.name})"
    return ""


_RANDOM = getattr(random.random, "__self__", None)


@contextmanager
def noting_impurities() -> Iterator[None]:
    """Follows the calls of this thread, and tells the recording if one of them cannot be repeated."""
    before: Any = sys.getprofile()
    if before is not None and type(before) is not FunctionType:  # a profiler in C, which cannot be put back
        yield
        return

    def follow(frame: FrameType, event: str, called: Any) -> None:
        if before is not None:
            before(frame, event, called)
        if event == "c_call":
            why = _why(called)
        elif event == "call" and frame.f_code is _ENVIRONMENT:
            why, frame = "the environment", frame.f_back or frame
        else:
            return
        if why and str(frame.f_globals.get("__name__")).split(".")[0] not in (*_QUIET, "plugrad"):
            _plugrad._note_unrepeatable(f"it reads {why}: pass what it reads as an argument")

    drawn = _numpy_state()
    sys.setprofile(follow)
    try:
        yield
    finally:
        sys.setprofile(before)
    if _numpy_state() != drawn:
        _plugrad._note_unrepeatable("it reads random numbers that are not plugrad's (numpy.random): pass them as arguments")


def _numpy_state() -> Any:
    """The state of NumPy's generator: its functions are no builtin functions, which a profiler sees."""
    numpy = sys.modules.get("numpy")
    if numpy is None or "numpy.random" not in sys.modules:
        return None
    state = numpy.random.get_state(legacy=False)
    inner = state["state"]
    return inner["pos"], bytes(inner["key"]) if "key" in inner else repr(state), state["has_gauss"]
