"""A training loop with a progress bar. Ctrl-C ends it between two steps and keeps what was learnt."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from . import _plugrad, data
from ._modes import no_grad
from ._plugrad import Tensor
from .nn import cross_entropy

__all__ = ["History", "Progress", "accuracy", "batches", "fit", "shuffled"]


class Progress:
    """Draws a bar on a terminal. Elsewhere it prints one line at the end, so that logs stay short."""

    WIDTH = 30
    INTERVAL = 0.1  # seconds between two drawings

    def __init__(self, total: int, label: str = "", file: TextIO | None = None,
                 enabled: bool = True) -> None:
        self._total, self._label, self._file = max(total, 1), label, file or sys.stderr
        self._enabled, self._done, self._text = enabled, 0, ""
        self._start, self._drawn = time.monotonic(), 0.0
        self._live = enabled and hasattr(self._file, "isatty") and self._file.isatty()

    def update(self, text: str = "", steps: int = 1) -> None:
        """Advances by `steps`. The text follows the bar."""
        self._done += steps
        self._text = text
        now = time.monotonic()
        if self._live and (now - self._drawn >= self.INTERVAL or self._done >= self._total):
            self._drawn = now
            self._file.write("\r" + self._line() + "\x1b[K")
            self._file.flush()

    def close(self) -> None:
        if self._enabled:
            self._file.write(("\r" if self._live else "") + self._line() + ("\x1b[K\n" if self._live else "\n"))
            self._file.flush()
        self._enabled = self._live = False

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _line(self) -> str:
        share = min(self._done / self._total, 1.0)
        bar = "=" * int(share * self.WIDTH)
        seconds = time.monotonic() - self._start
        parts = [self._label, f"[{bar:{self.WIDTH}}]", f"{self._done}/{self._total}", f"{seconds:.1f} s", self._text]
        return " ".join(part for part in parts if part)


@dataclass
class History:
    """The results of a run: the mean loss of each epoch, and whether Ctrl-C ended the run."""

    losses: list[float] = field(default_factory=list)
    interrupted: bool = False


def shuffled(count: int, seed: int, epoch: int) -> list[int]:
    """Returns a permutation of 0 .. count - 1 that depends on seed and epoch alone; `plugrad train` uses the same ones."""
    return _plugrad._shuffled_rows(count, seed, epoch)


def batches(count: int, size: int | None, order: Sequence[int] | None = None) -> Iterator[Sequence[int]]:
    """Yields the indices 0 .. count - 1, or those of `order`, in groups of `size`; the last group may be smaller."""
    if size is not None and size < 1:
        raise ValueError(f"[batches] size {size} is too small: at least 1 expected")
    order = range(count) if order is None else order
    step = size or max(count, 1)
    for start in range(0, count, step):
        yield order[start:start + step]


def _pick(x: Tensor, indices: Sequence[int]) -> Tensor:
    return x[indices.start:indices.stop] if isinstance(indices, range) else data.rows(x, indices)


def fit(model: Callable[[Tensor], Tensor], inputs: Tensor, targets: Tensor, optimizer: Any,
        loss: Callable[[Any, Tensor], Tensor] = cross_entropy, epochs: int = 1, batch_size: int | None = None,
        shuffle: bool = True, seed: int = 0, progress: bool = True,
        on_epoch: Callable[[int, float], None] | None = None, scheduler: Any = None) -> History:
    """Trains on rows of inputs and targets, in batches, or on all rows at once without batch_size.

    loss: a function of (model(inputs), targets) that returns one element. on_epoch: called with the number of the epoch and
    its mean loss. scheduler: its step() is called after each step of the optimiser. Ctrl-C ends the training between two
    steps and sets history.interrupted.
    """
    if len(inputs) != len(targets):
        raise ValueError(f"[fit] {len(inputs)} inputs, but {len(targets)} targets")
    history = History()
    try:
        for epoch in range(epochs):
            order = shuffled(len(inputs), seed, epoch) if shuffle and batch_size is not None else None
            history.losses.append(_epoch(model, inputs, targets, optimizer, scheduler, loss, batch_size, order, progress,
                                         f"epoch {epoch + 1}/{epochs}"))
            if on_epoch is not None:
                on_epoch(epoch, history.losses[-1])
    except KeyboardInterrupt:
        history.interrupted = True
    return history


def _epoch(model: Callable[[Tensor], Any], inputs: Tensor, targets: Tensor, optimizer: Any, scheduler: Any,
           loss: Callable[[Any, Tensor], Tensor], batch_size: int | None, order: Sequence[int] | None, progress: bool,
           label: str) -> float:
    total, seen = 0.0, 0
    steps = -(-len(inputs) // (batch_size or max(len(inputs), 1)))
    with Progress(steps, label, enabled=progress) as bar:
        for indices in batches(len(inputs), batch_size, order):
            value = loss(model(_pick(inputs, indices)), _pick(targets, indices))
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            total += value.item() * len(indices)
            seen += len(indices)
            bar.update(f"loss {total / seen:.4f}")
    return total / max(seen, 1)


def accuracy(model: Callable[[Tensor], Tensor], inputs: Tensor, labels: Tensor, batch_size: int = 1000) -> float:
    """Returns the share of rows whose largest output is the label's."""
    right: float = 0
    with no_grad():
        for indices in batches(len(inputs), batch_size):
            right += (model(_pick(inputs, indices)).argmax(-1) == _pick(labels, indices)).sum().item()
    return right / max(len(inputs), 1)
