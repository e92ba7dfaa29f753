"""Where time and memory go.

>>> from plugrad import Tensor, profiler
>>> x = Tensor([1.0, 2.0])
>>> with profiler.profile() as p:
...     with profiler.range("both"):
...         y = (x * x).exp()
>>> [event.name for event in p.events()]
['both', 'mul', 'exp']
"""

import os
import sys
from collections.abc import Callable
from contextlib import ContextDecorator
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from . import _plugrad
from ._html_table import table as _table
from ._plugrad import (MemoryEntry as MemoryEntry, MemorySnapshot as MemorySnapshot, ProfileEvent as ProfileEvent,
                       ProfileOperand as ProfileOperand, ProfileRow as ProfileRow)
from .nn import Module

Sort: TypeAlias = Literal["time", "bytes", "calls", "fallbacks"]

_PACKAGE = os.path.dirname(__file__) + os.sep


def _where() -> str:
    """Returns the program's line that called the package; empty on a thread without the program's frames."""
    frame = sys._getframe().f_back
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


class range(ContextDecorator):
    """Names a part of the program on this thread: `with range("forward"):`, or `@range("forward")` above a function.

    It is an event around the events inside, and a line of the table. Ranges nest. A range does nothing unless a profiler or
    record_memory records.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"[profiler] the name of a range is a str, not {type(name).__name__}")
        self._name = name
        self._entered: list[Any] = []  # an instance may be entered again inside itself

    def __enter__(self) -> Self:
        self._entered.append(_plugrad._ProfileRange(self._name))
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.pop()

    def _recreate_cm(self) -> Self:
        return type(self)(self._name)  # decorated functions may run on several threads


def _in_a_range(call: Callable[..., Any]) -> Callable[..., Any]:
    """Module.__call__ while a profiler records."""
    def called(self: Module, *arguments: Any, **named: Any) -> Any:
        with range(type(self).__name__):
            return call(self, *arguments, **named)
    return called


class profile:
    """Records the work of all threads inside `with profile() as p:`. p keeps the events afterwards. Only one profiler may
    record at a time.

    trace: a file for chrome://tracing or ui.perfetto.dev, written at the end of the block; OSError now if it cannot be
    written. synchronize: on a device with streams, such as a GPU, complete each op before the next op, so that its time is
    the time of the device's work; without it the times are the times of the calls. limit: events beyond this number are
    dropped and counted; an event takes some 500 bytes. memory: record origins of memory as well, as record_memory does.

    Each call of a module is a range of its class's name.
    """

    def __init__(self, trace: str | os.PathLike[str] | None = None, synchronize: bool = True, limit: int = 1_000_000,
                 memory: bool = False) -> None:
        self._given = trace, synchronize, limit, memory
        self._profiler: Any = None
        self._call: Any = None

    def __enter__(self) -> Self:
        if self._profiler is not None:
            raise ValueError("[profiler] this profile has recorded already: make another one")
        trace, synchronize, limit, memory = self._given
        self._profiler = _plugrad._Profiler(trace, synchronize, limit)
        self._memory = memory and not _plugrad._records_memory()
        if self._memory:
            record_memory()
        self._call = Module.__call__
        setattr(Module, "__call__", _in_a_range(self._call))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the recording and writes the trace. A second call does nothing; the end of the block calls it."""
        recorded = self._recorded()
        if self._call is not None:
            setattr(Module, "__call__", self._call)
            self._call = None
            if self._memory:
                record_memory(False)
        recorded.stop()

    def _recorded(self) -> Any:
        if self._profiler is None:
            raise ValueError("[profiler] nothing was recorded: use it as `with profile() as p:`")
        return self._profiler

    def events(self) -> list[ProfileEvent]:
        """All events so far, sorted by thread and begin."""
        events: list[ProfileEvent] = self._recorded().events()
        return events

    @property
    def dropped(self) -> int:
        """The number of events dropped because of the limit."""
        return int(self._recorded().dropped())

    def rows(self, sort: Sort = "time", rows: int = 20, shapes: bool = False) -> list[ProfileRow]:
        """Sums of events of the same name, device, way of running and direction; ranges come last.

        sort: the largest first, by time without the time of events inside. rows: at most so many, and so many ranges.
        shapes: whether calls with different shapes have separate rows.
        """
        found: list[ProfileRow] = self._recorded().rows(sort, rows, shapes)
        return found

    def table(self, sort: Sort = "time", rows: int = 20, shapes: bool = False) -> str:
        """The same as aligned text with a header and a line of totals."""
        return str(self._recorded().table(sort, rows, shapes))

    def _repr_html_(self) -> str:
        """The rows as a table, for notebooks: times in milliseconds."""
        rows = self.rows()
        whole = sum(row.self for row in rows if row.kind != "range")
        lines = [("name", "device", "how", "calls", "self, ms", "share", "total, ms", "bytes")]
        for row in rows:
            name = f"{row.name} (backward)" if row.backward else row.name
            share = "" if row.kind == "range" else f"{row.self / max(whole, 1):.1%}"
            lines.append((name, row.device, row.how, f"{row.calls:,}", f"{row.self / 1e6:.3f}", share,
                          f"{row.time / 1e6:.3f}", f"{row.bytes:,}"))
        return _table(lines, 3)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all events so far in Chrome's trace event format."""
        self._recorded().save(path)


def record_memory(on: bool = True, stack: bool = True) -> None:
    """Switches the recording of the origins of memory on or off, on all threads, for memory_snapshot. Drops earlier records.
    It slows ops down while it is on. stack: whether entries name a line of the program."""
    _plugrad._record_memory(on, _where if stack else None)


def memory_snapshot(device: _plugrad.Device | str | None = None, module: Module | None = None) -> MemorySnapshot:
    """Lists the memory of a device by use: parameters, gradients, tensors saved by recorded ops for their gradients, and the
    rest.

    module: its parameters, their gradients and its buffers get their names. Raises ValueError unless record_memory is on. No
    other thread may record ops or compute gradients meanwhile.
    """
    named = [] if module is None else [*module.named_parameters(), *module.named_buffers()]
    given = _plugrad.default_device() if device is None else device
    snapshot: MemorySnapshot = _plugrad._memory_snapshot(given, named)
    return snapshot
