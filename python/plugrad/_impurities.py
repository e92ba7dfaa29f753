"""Calls of a function whose results a recording cannot repeat: clocks, random numbers of Python, files, the environment."""

import contextvars
import gc
import io
import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from . import _plugrad
from ._names_read import is_library

_CLOCKS = frozenset(["time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
                     "process_time_ns", "thread_time", "thread_time_ns", "clock_gettime", "clock_gettime_ns", "localtime",
                     "gmtime", "ctime"])
_OF_THE_SYSTEM = frozenset(["urandom", "getrandom", "listdir", "scandir", "stat", "lstat", "getcwd", "open", "read"])
_ENVIRONMENT = type(os.environ).__getitem__.__code__
# These look at clocks and files for messages, and for the order of threads: no result depends on them.
_QUIET = frozenset(["logging", "warnings", "traceback", "linecache", "threading", "queue", "importlib", "tokenize"])


def _why(called: Any) -> str:
    """Why a builtin function gives another result each time; empty if it does not."""
    owner: Any = getattr(called, "__self__", None)
    name = getattr(called, "__name__", "")
    kind = type(owner)
    if kind is ModuleType:
        return _of_module(owner.__name__, name)
    if owner is _RANDOM:
        return f"random numbers that are not plugrad's ({name})"
    if issubclass(kind, type) and issubclass(owner, date) and name in ("now", "today", "utcnow"):
        return f"the clock ({name})"
    if issubclass(kind, io.IOBase) and name.startswith("read"):
        return f"a file ({name})"
    if kind is contextvars.ContextVar and name == "get":
        return f"a context variable ({owner.name})"
    return ""


def _of_module(module: str, name: str) -> str:
    if module == "time" and name in _CLOCKS:
        return f"the clock ({name})"
    if module in ("posix", "nt") and name in _OF_THE_SYSTEM:
        return f"the system ({name})"
    return f"a file ({name})" if module in ("builtins", "io", "_io") and name in ("open", "input") else ""


_RANDOM = getattr(random.random, "__self__", None)


@contextmanager
def noting_calls(known: frozenset[int]) -> Iterator[list[CodeType]]:
    """Follows the calls of this thread, and tells the recording if one of them cannot be repeated. Collects the code of a
    program's functions beyond the known ones, by identity."""
    before: Any = sys.getprofile()
    found: dict[int, CodeType] = {}
    codes: list[CodeType] = []
    if before is not None and type(before) is not FunctionType:  # a profiler in C, which cannot be put back
        yield codes
        return

    def follow(frame: FrameType, event: str, called: Any) -> None:
        if before is not None:
            before(frame, event, called)
        why = ""
        if event == "c_call":
            why = _why(called)
        elif event == "call":
            code = frame.f_code
            if code is _ENVIRONMENT:
                why, frame = "the environment", frame.f_back or frame
            elif id(code) not in known and code.co_name != "<module>" and not is_library(_root_of(frame)):
                found[id(code)] = code
        if why and _root_of(frame) not in (*_QUIET, "plugrad"):
            _plugrad._note_unrepeatable(f"it reads {why}: pass what it reads as an argument")

    drawn, collects = _numpy_state(), gc.isenabled()
    gc.disable()  # finalizers and callbacks of the collector are no part of the function
    sys.setprofile(follow)
    try:
        yield codes
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
        codes.extend(found.values())
    if _numpy_state() != drawn:
        _plugrad._note_unrepeatable("it reads random numbers that are not plugrad's (numpy.random): pass them as arguments")


def _root_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).split(".")[0]


def functions_of(codes: list[CodeType]) -> list[FunctionType]:
    """The functions that have this code."""
    wanted = {id(each) for each in codes}
    return [each for each in gc.get_referrers(*codes) if type(each) is FunctionType and id(each.__code__) in wanted]


def _numpy_state() -> Any:
    """The state of NumPy's generator: its functions are no builtin functions, which a profiler sees."""
    numpy = sys.modules.get("numpy")
    if numpy is None or "numpy.random" not in sys.modules:
        return None
    state = numpy.random.get_state(legacy=False)
    inner = state["state"]
    return inner["pos"], bytes(inner["key"]) if "key" in inner else repr(state), state["has_gauss"]
