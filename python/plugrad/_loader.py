"""Batches of a data set, loaded ahead by threads or processes."""

import signal
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import islice, repeat
from multiprocessing import get_context
from typing import Any

from . import _plugrad
from ._collation import default_collate, default_convert
from ._datasets import reader_of_rows
from ._generator import Generator, draw
from ._modes import set_grad_enabled
from ._samplers import chunks

__all__ = ["DataLoader"]

_END = object()


class _Loading:
    """Makes batches of a data set's samples. Worker processes get a copy."""

    def __init__(self, dataset: Any, collate: Callable[[Any], Any] | None, batched: bool) -> None:
        self._dataset, self._batched = dataset, batched
        self._collate = collate or (default_collate if batched else default_convert)
        self._rows = reader_of_rows(dataset) if batched and collate is None else None

    def batch(self, numbers: Any) -> Any:
        """Returns the batch of these samples, or, without batches, the sample of this number."""
        if self._rows is not None:
            return self._rows(numbers)
        return self._collate(self._samples(numbers) if self._batched else self._sample(numbers))

    def collated(self, samples: Any) -> Any:
        return self._collate(samples)

    def _samples(self, numbers: Any) -> Any:
        many = getattr(self._dataset, "__getitems__", None)
        return many(numbers) if many else [self._sample(i) for i in numbers]

    def _sample(self, number: int) -> Any:
        try:
            return self._dataset[number]
        except Exception as error:
            error.add_note(f"[DataLoader] this happened while sample {number} was loaded")
            raise


def _recording(record: bool, load: Callable[[], Any]) -> Any:
    """Loads on a worker thread with the mode of the iterating thread: each thread has its own mode of recording."""
    with set_grad_enabled(record):
        return load()


_in_process: _Loading  # this worker process's copy


def _start_process(loading: _Loading) -> None:
    global _in_process
    _in_process = loading
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the parent ends its workers


def _load_in_process(numbers: Any) -> Any:
    return _in_process.batch(numbers)


def _ahead(pool: Executor, tasks: Iterator[Callable[[], Any]], ahead: int) -> Iterator[Any]:
    """Yields the results of tasks in their order, up to the result _END, while the pool runs the next tasks."""
    waiting: deque[Future[Any]] = deque()
    try:
        waiting.extend(pool.submit(task) for task in islice(tasks, ahead))
        while waiting:
            done = waiting.popleft().result()
            if done is _END:
                return
            waiting.extend(pool.submit(task) for task in islice(tasks, 1))
            yield done
    finally:
        for each in waiting:
            each.cancel()


class DataLoader:
    """Batches of a data set, in order or shuffled, with PyTorch's names.

    dataset: has `__len__` and `__getitem__`, as lists and TensorDatasets do, or is an iterable of samples. Its optional
    `__getitems__` takes the numbers of a batch and returns a list of samples.
    batch_size: None yields single samples, with tensors in place of arrays.
    shuffle: a new order in each epoch, by the generator, or by the default device's if none is given. With a seed it depends
    on the seed and the epoch alone; C++'s DataLoader has the same order.
    sampler: the numbers of the samples of an epoch in their order; batch_sampler: a list of numbers for each batch.
    collate_fn: makes a batch of a list of samples; by default `default_collate`.
    num_workers: the number of threads that load batches ahead, prefetch_factor for each; with 0, each batch is loaded when
    it is needed. A single thread reads an iterable. Batches keep their order for any number.
    worker: "thread" or "process". Threads share the data set. They run at the same time where the GIL is released: in reads
    of files, NumPy, Pillow, and ops on many elements. Processes run Python code at the same time. Each gets a copy of the
    data set by pickle when the first epoch begins, and sends its batches back by value. They are started afresh (`spawn`),
    because a fork would copy locks of other threads. So a program starts its work below `if __name__ == "__main__":`.

    `iter(loader)` begins the next epoch: 0, 1 and so on; `loader.epoch = 5` resumes there. `len(loader)` is the number of
    batches. When a loop ends early, it waits for the batches in progress. The loop raises the exceptions of a sample, with
    a note that names the sample. pin_memory and persistent_workers are accepted and have no effect.
    """

    def __init__(self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = False,
                 sampler: Iterable[int] | None = None, batch_sampler: Iterable[Sequence[int]] | None = None,
                 num_workers: int = 0, collate_fn: Callable[[Any], Any] | None = None, pin_memory: bool = False,
                 drop_last: bool = False, *, prefetch_factor: int | None = None, persistent_workers: bool = False,
                 seed: int | None = None, worker: str = "thread", generator: Generator | None = None) -> None:
        self.dataset, self.batch_size, self.shuffle, self.drop_last = dataset, batch_size, bool(shuffle), drop_last
        self.sampler, self.batch_sampler, self.collate_fn = sampler, batch_sampler, collate_fn
        self.num_workers, self.worker, self.seed, self._epoch = num_workers, worker, seed, 0
        self.generator = generator
        self.prefetch_factor = 2 if prefetch_factor is None else prefetch_factor
        self._indexed = hasattr(dataset, "__getitem__")
        self._pool: ProcessPoolExecutor | None = None
        self._check_sizes()
        self._check_order()
        self._loading = _Loading(dataset, collate_fn, batch_size is not None or batch_sampler is not None)

    def _check_sizes(self) -> None:
        for name, least in (("batch_size", 1), ("num_workers", 0), ("prefetch_factor", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"[DataLoader] {name} {value} is too small: at least {least} expected")
        if self.worker not in ("thread", "process"):
            raise ValueError(f"[DataLoader] worker {self.worker!r} is unknown: 'thread' or 'process' expected")
        if not self._indexed and not hasattr(self.dataset, "__iter__"):
            raise TypeError(f"[DataLoader] a {type(self.dataset).__name__} has no samples: a data set with __len__ and "
                            "__getitem__, or an iterable, is expected")

    def _check_order(self) -> None:
        ordered = self.shuffle or self.sampler is not None or self.batch_sampler is not None
        if not self._indexed and (ordered or self.worker == "process"):
            raise ValueError("[DataLoader] an iterable has its own order, in which one thread reads it: leave out shuffle, "
                             "sampler, batch_sampler and worker")
        if self.sampler is not None and self.shuffle:
            raise ValueError("[DataLoader] both sampler and shuffle say the order: leave one of them out")
        if self.batch_sampler is not None and (self.batch_size != 1 or self.shuffle or self.sampler is not None
                                               or self.drop_last):
            raise ValueError("[DataLoader] batch_sampler says what batches are: leave out batch_size, shuffle, sampler and "
                             "drop_last")
        if self.batch_size is None and self.drop_last:
            raise ValueError("[DataLoader] without batch_size no batch can be too small: leave out drop_last")

    @property
    def epoch(self) -> int:
        """The number of the next loop."""
        return self._epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        if epoch < 0:
            raise ValueError(f"[DataLoader] epoch {epoch} is negative")
        self._epoch = epoch

    def set_epoch(self, epoch: int) -> None:
        """Makes the next loop this epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        if self.batch_sampler is not None:
            return len(self.batch_sampler)  # type: ignore[arg-type]
        samples = len(self.dataset if self.sampler is None else self.sampler)  # type: ignore[arg-type]
        if self.batch_size is None:
            return samples
        return samples // self.batch_size if self.drop_last else -(-samples // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        epoch, self._epoch = self._epoch, self._epoch + 1
        if not self._indexed:
            return self._read()
        numbers = self._numbers(epoch)
        if self.num_workers == 0:
            return map(self._loading.batch, numbers)
        return self._in_processes(numbers) if self.worker == "process" else self._in_threads(numbers)

    def _numbers(self, epoch: int) -> Iterator[Any]:
        """The numbers of the samples of each batch."""
        if self.batch_sampler is not None:
            return iter(self.batch_sampler)
        order = self.sampler
        if order is None:
            count = len(self.dataset)
            order = self._shuffled(count, epoch) if self.shuffle else range(count)
        return iter(order) if self.batch_size is None else chunks(order, self.batch_size, self.drop_last)

    def _shuffled(self, count: int, epoch: int) -> list[int]:
        if self.seed is not None:
            return _plugrad._shuffled_rows(count, self.seed, epoch)
        return _plugrad._shuffled_rows(count, draw(self.generator), 0)

    def _in_threads(self, numbers: Iterator[Any]) -> Iterator[Any]:
        record = _plugrad.grad_enabled()
        tasks = (partial(_recording, record, partial(self._loading.batch, each)) for each in numbers)
        with ThreadPoolExecutor(self.num_workers, "plugrad-loader") as pool:
            yield from _ahead(pool, tasks, self.num_workers * self.prefetch_factor)

    def _in_processes(self, numbers: Iterator[Any]) -> Iterator[Any]:
        try:
            tasks = (partial(_load_in_process, each) for each in numbers)
            yield from _ahead(self._processes(), tasks, self.num_workers * self.prefetch_factor)
        except BrokenProcessPool as error:
            self._pool = None
            raise RuntimeError("[DataLoader] a worker process ended. Its output may say why; a common cause is a program "
                               "that does not start its work below `if __name__ == \"__main__\":`") from error

    def _processes(self) -> ProcessPoolExecutor:
        """Returns the worker processes. They live as long as the loader: starting them takes a second."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.num_workers, get_context("spawn"), _start_process, (self._loading,))
            weakref.finalize(self, self._pool.shutdown, wait=False, cancel_futures=True)
        return self._pool

    def _read(self) -> Iterator[Any]:
        """The batches of an iterable."""
        samples = iter(self.dataset)
        groups = samples if self.batch_size is None else chunks(samples, self.batch_size, self.drop_last)
        batches = map(self._loading.collated, groups)
        if self.num_workers == 0:
            yield from batches
            return
        record = _plugrad.grad_enabled()
        with ThreadPoolExecutor(1, "plugrad-loader") as pool:
            yield from _ahead(pool, repeat(partial(_recording, record, partial(next, batches, _END))), self.prefetch_factor)
