"""The training loop of plugrad/training/fit.hpp, with a progress bar. Ctrl-C ends it and keeps what was learnt."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TextIO, overload

from . import _plugrad
from ._compile import compile as _compiled
from ._datasets import TensorDataset
from ._fit_loop import Loop, steps_of
from ._loader import DataLoader
from ._modes import no_grad
from ._plugrad import Tensor
from ._rate_search import RateSearch, find_learning_rate
from ._samplers import DistributedSampler
from .nn import cross_entropy
from .nn.parallel import DistributedDataParallel

__all__ = ["History", "Progress", "RateSearch", "accuracy", "batches", "find_learning_rate", "fit", "plot", "shuffled"]


class Progress:
    """Draws a bar on a terminal. Elsewhere it prints a single line at the end, to keep logs short."""

    WIDTH = 30
    INTERVAL = 0.1  # seconds between two drawings

    def __init__(self, total: int, label: str = "", file: TextIO | None = None,
                 enabled: bool = True) -> None:
        self._total, self._label, self._file = max(total, 1), label, file or sys.stderr
        self._enabled, self._done = enabled, 0
        self._text: str | Callable[[], str] = ""
        self._start, self._drawn = time.monotonic(), 0.0
        self._live = enabled and hasattr(self._file, "isatty") and self._file.isatty()

    def update(self, text: str | Callable[[], str] = "", steps: int = 1) -> None:
        """Advances by `steps`. The text follows the bar; a function for the text is called only for drawing."""
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

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.close()
        except Exception:  # of the text's function: it must not hide the exception that ended the block
            if kind is None:
                raise
            self._text = ""
            self.close()

    def _line(self) -> str:
        share = min(self._done / self._total, 1.0)
        bar = "=" * int(share * self.WIDTH)
        seconds = time.monotonic() - self._start
        text = self._text if isinstance(self._text, str) else self._text()
        steps = f"{self._done}/{self._total}" if self._done <= self._total else str(self._done)  # of an unknown total
        parts = [self._label, f"[{bar:{self.WIDTH}}]", steps, f"{seconds:.1f} s", text]
        return " ".join(part for part in parts if part)


@dataclass
class History:
    """The results of a training: the mean loss of each whole epoch, before each step; the result of `validate` after each
    epoch; and whether Ctrl-C or `stop` ended it."""

    losses: list[float] = field(default_factory=list)
    validations: list[float] = field(default_factory=list)
    interrupted: bool = False

    def plot(self, path: Any = None, title: str = "") -> Any:
        """Draws the learning curves: see `plot`."""
        return plot(self, path, title)


def plot(history: History, path: Any = None, title: str = "") -> Any:
    """Draws the loss and, on an axis of its own, the validation of each epoch by Matplotlib; returns its Figure.

    path: where to write the picture; its suffix says the format, such as .svg or .png. Raises ImportError without
    Matplotlib.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator
    except ImportError:
        raise ImportError("[plot] Matplotlib is not installed: pip install matplotlib") from None
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.set(title=title, xlabel="epoch")
    curves = [(axes, history.losses, "loss", "#2563a8")]
    if history.validations:
        curves.append((axes.twinx(), history.validations, "validation", "#c2571a"))
    for each, values, name, colour in curves:
        each.plot(range(1, len(values) + 1), values, color=colour, marker="o", markersize=3)
        each.set_ylabel(name, color=colour)
    if any(value > 0 for value in history.losses):
        axes.set_ylim(bottom=min(0, *history.losses))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    if path is not None:
        figure.savefig(path)
    return figure


def shuffled(count: int, seed: int, epoch: int) -> list[int]:
    """Returns a permutation of 0 .. count - 1, a function of seed and epoch alone. `plugrad train` uses the same orders."""
    return _plugrad._shuffled_rows(count, seed, epoch)


def batches(count: int, size: int | None, order: Sequence[int] | None = None) -> Iterator[Sequence[int]]:
    """Yields the indices 0 .. count - 1, or the indices in `order`, in groups of `size`; the last group may be smaller."""
    if size is not None and size < 1:
        raise ValueError(f"[batches] size {size} is too small: at least 1 expected")
    order = range(count) if order is None else order
    step = size or max(count, 1)
    for start in range(0, count, step):
        yield order[start:start + step]


def _loss_of_batches(model: Callable[..., Any], loss: Callable[[Any, Any], Tensor] | None) -> Callable[[Any], Tensor]:
    def of_pair(batch: Any) -> Tensor:
        if not isinstance(batch, list | tuple) or len(batch) < 2:
            raise ValueError(f"[fit] a batch is a {type(batch).__name__}: a pair of inputs and targets is expected. For "
                             "others pass loss=None, and as model a function of the batch that returns its loss")
        *inputs, targets = batch
        assert loss is not None
        return loss(model(*inputs), targets)
    return model if loss is None else of_pair


def _batches_of(inputs: Any, targets: Any, batch_size: int | None, shuffle: bool, seed: int) -> Iterable[Any]:
    if not isinstance(inputs, Tensor):
        if batch_size is not None or targets is not None:
            raise ValueError("[fit] targets and batch_size are the loader's: leave them out")
        return inputs  # type: ignore[no-any-return]
    if not isinstance(targets, Tensor):
        raise TypeError(f"[fit] targets are a {type(targets).__name__}: a tensor is expected beside a tensor of inputs")
    if len(inputs) != len(targets):
        raise ValueError(f"[fit] {len(inputs)} inputs, but {len(targets)} targets")
    if batch_size is None:
        return [(inputs, targets)] if len(inputs) else []
    return DataLoader(TensorDataset(inputs, targets), batch_size, shuffle, seed=seed)


def _train(loop: Loop, loader: Iterable[Any], epochs: int, progress: bool, validate: Callable[[], float] | None,
           on_epoch: Callable[[int, float], object] | None) -> None:
    history = loop.history
    for epoch in range(epochs):
        with Progress(steps_of(loader), f"epoch {epoch + 1}/{epochs}", enabled=progress and loop.is_first()) as bar:
            loss = loop.epoch(loader, bar)
        if loss is None:
            return
        history.losses.append(loss)
        if validate is not None:
            with no_grad():
                history.validations.append(float(validate()))
        if on_epoch is not None:
            on_epoch(epoch, loss)
        if history.interrupted:
            return


def _roles(model: Any, loader: Any) -> dict[str, Any]:
    """Returns what a Loop must know where several processes train together."""
    return {"parallel": model if isinstance(model, DistributedDataParallel) else None,
            "divides": not isinstance(getattr(loader, "sampler", None), DistributedSampler)}


def _check(epochs: int, optimizer: Any, max_norm: float | None, compiles_scaler: bool) -> None:
    if epochs < 0:
        raise ValueError(f"[fit] epochs {epochs} is negative")
    if not hasattr(optimizer, "step"):
        raise TypeError(f"[fit] the optimizer is a {type(optimizer).__name__}: one of plugrad.optim is expected")
    if max_norm is not None and not max_norm > 0:
        raise ValueError(f"[fit] max_norm {max_norm} is not positive: leave it out for gradients without limit")
    if compiles_scaler:
        raise ValueError("[fit] compile is set and there is a scaler, which reads gradients in each step: leave one of them "
                         "out")


@overload
def fit(model: Callable[..., Any], inputs: Tensor, targets: Tensor, optimizer: Any,
        loss: Callable[[Any, Any], Tensor] | None = ..., epochs: int = ..., batch_size: int | None = ...,
        shuffle: bool = ..., seed: int = ..., progress: bool = ..., on_epoch: Callable[[int, float], object] | None = ...,
        scheduler: Any = ..., *, max_norm: float | None = ..., autocast: AbstractContextManager[Any] | None = ...,
        scaler: _plugrad.GradScaler | None = ..., validate: Callable[[], float] | None = ...,
        stop: Callable[[], bool] | None = ..., compile: bool = ...) -> History: ...
@overload
def fit(model: Callable[..., Any], loader: Iterable[Any], optimizer: Any, /, *,
        loss: Callable[[Any, Any], Tensor] | None = ..., epochs: int = ..., progress: bool = ...,
        on_epoch: Callable[[int, float], object] | None = ..., scheduler: Any = ..., max_norm: float | None = ...,
        autocast: AbstractContextManager[Any] | None = ..., scaler: _plugrad.GradScaler | None = ...,
        validate: Callable[[], float] | None = ..., stop: Callable[[], bool] | None = ...,
        compile: bool = ...) -> History: ...
@overload
def fit(model: Callable[..., Any], loader: Iterable[Any], /, *, optimizer: Any,
        loss: Callable[[Any, Any], Tensor] | None = ..., epochs: int = ..., progress: bool = ...,
        on_epoch: Callable[[int, float], object] | None = ..., scheduler: Any = ..., max_norm: float | None = ...,
        autocast: AbstractContextManager[Any] | None = ..., scaler: _plugrad.GradScaler | None = ...,
        validate: Callable[[], float] | None = ..., stop: Callable[[], bool] | None = ...,
        compile: bool = ...) -> History: ...


def fit(model: Callable[..., Any], inputs: Any, targets: Any = None, optimizer: Any = None,
        loss: Callable[[Any, Any], Tensor] | None = cross_entropy, epochs: int = 1, batch_size: int | None = None,
        shuffle: bool = True, seed: int = 0, progress: bool = True,
        on_epoch: Callable[[int, float], object] | None = None, scheduler: Any = None, *, max_norm: float | None = None,
        autocast: AbstractContextManager[Any] | None = None, scaler: _plugrad.GradScaler | None = None,
        validate: Callable[[], float] | None = None, stop: Callable[[], bool] | None = None,
        compile: bool = False) -> History:  # noqa: A002
    """Trains on a loader, `fit(model, loader, optimizer)`, or on rows, `fit(model, inputs, targets, optimizer)`.

    loader: a DataLoader, or any iterable of batches (inputs, targets). Each epoch is a loop over it. If a batch has several
    inputs, the model gets all of them. batch_size, shuffle and seed: of the loader made of two tensors; without batch_size
    a batch has all rows, in their order. Shuffled epochs equal the epochs of C++'s `fit` and of `plugrad train` for the same
    seed. loss: a function of (model(inputs), targets) with a result of 1 element; with None, `model(batch)` is the loss.
    max_norm: limits the norm of each step's gradients. scheduler: its step() is called after each step of the optimizer, but
    not after a step left out by the scaler.
    autocast: plugrad.autocast(...); model and loss run inside it. scaler: a GradScaler; if given, it makes the steps.
    A DistributedDataParallel as model: the processes train together. All have the same batches and callbacks, and each
    computes the loss of its part of the rows of each batch; or a loader of a DistributedSampler gives each process batches
    of its own, as many as it has. Losses and steps are those of all processes' rows; stop() of one process stops all.
    validate: called after each epoch, unrecorded; see History. on_epoch: called then, with the number of the epoch and its
    mean loss. stop: called after each step; True ends the training. Ctrl-C ends it too, and sets history.interrupted.
    compile: records the steps and replays them, with the same bits: see plugrad.compile. Not with a scaler, because a scaler
    reads gradients.
    Raises ValueError for numbers out of range, for inputs and targets of different lengths, and for an epoch without
    batches.
    """
    if optimizer is None and hasattr(targets, "step"):
        targets, optimizer = None, targets
    loader = _batches_of(inputs, targets, batch_size, shuffle, seed)
    _check(epochs, optimizer, max_norm, compile and scaler is not None)
    loop = Loop(_loss_of_batches(model, loss), optimizer, scheduler, max_norm, autocast or nullcontext(),
                 scaler or _plugrad.GradScaler(enabled=False), stop, History(), **_roles(model, loader))
    if compile:
        loop.compute = _compiled(loop.computed, name="fit")
    try:
        _train(loop, loader, epochs, progress, validate, on_epoch)
    except KeyboardInterrupt:
        loop.history.interrupted = True
    return loop.history


def accuracy(model: Callable[[Tensor], Tensor], inputs: Tensor, labels: Tensor, batch_size: int = 1000) -> float:
    """Returns the share of rows whose label has the largest output."""
    right: float = 0
    with no_grad():
        for indices in batches(len(inputs), batch_size):
            rows = slice(indices[0], indices[-1] + 1)
            right += (model(inputs[rows]).argmax(-1) == labels[rows]).sum().item()
    return right / max(len(inputs), 1)
