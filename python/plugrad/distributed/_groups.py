"""The groups of processes."""

import datetime
import sys
from collections.abc import Callable, Sequence
from types import TracebackType

from .. import _plugrad
from .._plugrad import _ProcessGroup as ProcessGroup

_previous_hook: Callable[[type[BaseException], BaseException, TracebackType | None], object] | None = None


def _tell_and_show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The other ranks then name this rank and its error, unless another rank failed before."""
    _plugrad._abort_process_group(f"{kind.__name__}: {error}")
    (_previous_hook or sys.__excepthook__)(kind, error, trace)


def _store_of(init_method: str | None) -> str:
    return "" if init_method in (None, "env://") else str(init_method)


def init_process_group(backend: str | None = None, init_method: str | None = None,
                       timeout: datetime.timedelta | float | None = None, world_size: int = -1, rank: int = -1, *,
                       options: dict[str, str] | None = None) -> ProcessGroup:
    """Joins this process to the group of all processes, and returns the group. Waits for all of them.

    What is not given comes from the environment, as `plugrad launch`, mpirun, torchrun or srun set it.

    backend      the communicator: "gloo", "mpi", "mpich", "nccl", or the absolute path of a plugin's file
    init_method  where the processes meet: "file:///DIRECTORY", "tcp://HOST:PORT", where rank 0 listens, or "pmix:"
    timeout      of the start and of each collective: a timedelta or seconds; 30 minutes by default
    options      of the communicator: gloo takes "interface" and "address", nccl "device"

    Raises ValueError if nothing tells the rank, or if launcher and communicator count different numbers of processes;
    ConnectionError if a process does not come in time.
    """
    global _previous_hook
    seconds = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else timeout or 0
    if seconds < 0:
        raise ValueError(f"[init_process_group] timeout is {seconds} s: a positive number expected")
    group = _plugrad._init_process_group(backend or "", rank, world_size, _store_of(init_method), seconds,
                                         list((options or {}).items()))
    if _previous_hook is None:
        _previous_hook, sys.excepthook = sys.excepthook, _tell_and_show
    return group


def destroy_process_group() -> None:
    """Leaves the group of all processes, and all other groups. Does nothing without a group.

    The end of the program does the same. Raises ConnectionError, after leaving, if another rank is lost meanwhile.
    """
    _plugrad._destroy_process_group()


def abort_process_group(why: str = "abort_process_group was called") -> None:
    """Tells all other ranks that this rank fails and why; their collectives then raise an error that quotes the text.

    An uncaught exception does the same.
    """
    _plugrad._abort_process_group(why)


def is_initialized() -> bool:
    """Whether this process is in a group."""
    return _plugrad._is_initialized()


def is_launched() -> bool:
    """Whether a launcher tells this process its rank, so that init_process_group() needs no arguments."""
    return _plugrad._is_launched()


def is_available() -> bool:
    """Whether any communicator is installed."""
    return bool(_plugrad._communicators())


def is_gloo_available() -> bool:
    """Whether the communicator gloo is installed."""
    return "gloo" in _plugrad._communicators()


def is_mpi_available() -> bool:
    """Whether the communicator mpi is installed."""
    return "mpi" in _plugrad._communicators()


def is_nccl_available() -> bool:
    """Whether the communicator nccl is installed. It looks for NCCL itself when a group starts."""
    return "nccl" in _plugrad._communicators()


def new_group(ranks: Sequence[int] | None = None) -> ProcessGroup | None:
    """Makes a group of some processes, all by default; None for a process outside of it. All processes call it."""
    return _plugrad._new_group(list(range(get_world_size())) if ranks is None else list(ranks))


def get_rank(group: ProcessGroup | None = None) -> int:
    """Returns the rank of this process."""
    return (group or _plugrad._world()).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Returns the number of processes."""
    return (group or _plugrad._world()).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """Returns the communicator's name: "gloo"."""
    return (group or _plugrad._world()).communicator


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """Returns the ranks of a group, as ranks of the group of all processes."""
    return (group or _plugrad._world()).ranks
