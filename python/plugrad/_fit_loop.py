"""The steps and epochs of plugrad.training.fit, alone or on several processes."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _plugrad
from ._plugrad import Tensor
from .nn.parallel import DistributedDataParallel
from .nn.utils import clip_grad_norm_

if TYPE_CHECKING:
    from .training import History, Progress


class MeanLoss:
    """The mean of the losses of all samples so far. Reading a loss waits for the device, so they are read in groups."""

    PENDING = 64

    def __init__(self) -> None:
        self._pending: list[tuple[Tensor, int]] = []
        self._total, self._rows = 0.0, 0

    def add(self, loss: Tensor, rows: int) -> None:
        self._pending.append((loss.detach(), rows))
        if len(self._pending) == self.PENDING:
            self._read()

    def mean(self) -> float:
        self._read()
        return self._total / self._rows if self._rows else float("nan")

    def mean_of(self, parallel: DistributedDataParallel | None) -> float:
        """The mean over the processes that train together, which all call it."""
        if parallel is None:
            return self.mean()
        self._read()
        total, rows = parallel._reducer.sum_over_ranks([self._total, self._rows])
        return total / rows if rows else float("nan")

    def _read(self) -> None:
        for loss, rows in self._pending:
            self._total += float(loss.item()) * rows
            self._rows += rows
        self._pending.clear()


def rows_of(batch: Any) -> int:
    """Returns the number of samples in a batch: the rows of its first tensor."""
    if isinstance(batch, Tensor):
        return len(batch) if batch.ndim else 1
    parts = list(batch.values()) if isinstance(batch, Mapping) else batch
    return rows_of(parts[0]) if isinstance(parts, list | tuple) and parts else 1


def slice_of(batch: Any, rows: int, part: slice) -> Any:
    """Returns these rows of all tensors of a batch that have as many rows as the first."""
    if isinstance(batch, Tensor):
        return batch[part] if batch.ndim and len(batch) == rows else batch
    if isinstance(batch, Mapping):
        return {key: slice_of(value, rows, part) for key, value in batch.items()}
    return type(batch)(slice_of(each, rows, part) for each in batch) if isinstance(batch, list | tuple) else batch


@dataclass
class Loop:
    """The state of a training, shared by its epochs."""

    loss_of: Callable[[Any], Tensor]
    optimizer: Any
    scheduler: Any
    max_norm: float | None
    autocast: AbstractContextManager[Any]
    scaler: _plugrad.GradScaler
    stop: Callable[[], bool] | None
    history: "History"
    stepped: bool = True
    compute: Callable[[Any], list[Tensor]] | None = None  # step without the scheduler; set only if compiled
    parallel: DistributedDataParallel | None = None  # the model of processes that train together
    divides: bool = False  # whether the batches are those of all processes

    def parts_of(self, batch: Any) -> list[tuple[Any, int]]:
        """Returns this process's parts of a batch, one for each backward pass, and their numbers of rows."""
        rows = rows_of(batch)
        if self.parallel is None:
            return [(batch, rows)]
        slices = self.parallel._parts(rows, self.divides)
        return [(slice_of(batch, rows, each), each.stop - each.start) for each in slices]

    def missing_steps(self, loader: Iterable[Any]) -> int:
        """The number of steps that another process makes in an epoch after the last batch of this one."""
        if self.parallel is None or self.divides:
            return 0
        reducer, own = self.parallel._reducer, steps_of(loader)
        steps = reducer.sum_over_ranks([own * (rank == reducer.rank()) for rank in range(reducer.size())])
        return int(max(steps)) - own

    def computed(self, parts: list[tuple[Any, int]]) -> list[Tensor]:
        losses = []
        for i, (part, rows) in enumerate(parts):
            if rows:
                with self.autocast:
                    losses.append(self.loss_of(part))
            if i == 0:
                self.optimizer.zero_grad()
            if rows:
                self.scaler.scale(losses[-1]).backward()
            elif self.parallel is not None:
                self.parallel.pass_without_data()
        if self.max_norm is not None:
            self.scaler.unscale_(self.optimizer)
            clip_grad_norm_([p for group in self.optimizer.param_groups for p in group["params"]], self.max_norm)
        self.stepped = self.scaler.step(self.optimizer)
        self.scaler.update()
        return losses

    def step(self, parts: list[tuple[Any, int]], losses: MeanLoss) -> None:
        """Makes a step, and adds the losses before it."""
        filled = [rows for _, rows in parts if rows]
        compute = self.compute if self.compute is not None and len(filled) == len(parts) else self.computed
        for loss, rows in zip(compute(parts), filled, strict=True):
            losses.add(loss, rows)
        if self.stepped and self.scheduler is not None:
            self.scheduler.step()

    def is_first(self) -> bool:
        return self.parallel is None or self.parallel._reducer.rank() == 0

    def stops(self) -> bool:
        """Whether stop() of this process, or of one that trains with it, ends the training."""
        if self.stop is None:
            return False
        here = bool(self.stop())
        return here if self.parallel is None else self.parallel._reducer.sum_over_ranks([float(here)])[0] > 0

    def epoch(self, loader: Iterable[Any], bar: "Progress") -> float | None:
        """Trains on the batches of an epoch. Returns their mean loss, or None if `stop` ended it before its last batch."""
        losses, missing = MeanLoss(), self.missing_steps(loader)
        batches = iter(loader)
        batch = next(batches, None)
        if batch is None:
            raise ValueError("[fit] the epoch has no batches: there are no samples, or drop_last leaves all of them out")
        while batch is not None:
            self.step(self.parts_of(batch), losses)
            bar.update(lambda: f"loss {losses.mean():.4f}")
            self.history.interrupted = self.stops()
            batch = next(batches, None)
            if self.history.interrupted and batch is not None:
                return None
        for _ in range(missing):
            self.step([(None, 0)] * self.parallel.passes if self.parallel is not None else [], losses)
            self.history.interrupted = self.stops() or self.history.interrupted
        return losses.mean_of(self.parallel)


def steps_of(loader: Any) -> int:
    """Returns the number of batches in an epoch; 0 if the loader does not know."""
    try:
        return len(loader)
    except (TypeError, NotImplementedError):
        return 0
