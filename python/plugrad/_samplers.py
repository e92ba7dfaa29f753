"""Orders of a data set's samples in a DataLoader."""

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any

from . import _plugrad
from ._generator import Generator, draw
from ._plugrad import Tensor

__all__ = ["BatchSampler", "DistributedSampler", "RandomSampler", "SequentialSampler", "WeightedRandomSampler", "chunks"]


def chunks(items: Iterable[Any], size: int, drop_last: bool) -> Iterator[list[Any]]:
    """Yields lists of `size` items each; the last list may be smaller, unless it is left out."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        if len(chunk) == size or not drop_last:
            yield chunk


class SequentialSampler:
    """The samples of a data set in their order."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __len__(self) -> int:
        return len(self.data_source)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))


class RandomSampler:
    """The samples of a data set in a new order in each loop, by the generator, or by the default device's if none is given.
    With a seed, the n-th order depends on the seed and n alone.

    num_samples: the number of samples; by default all. replacement: draws each among all samples, so that a sample may come
    several times or never; the seed has no effect on these draws. Raises ValueError for a num_samples below 1, and, without
    replacement, above the number of samples.
    """

    def __init__(self, data_source: Sized, replacement: bool = False, num_samples: int | None = None,
                 generator: Generator | None = None, seed: int | None = None) -> None:
        self.data_source, self.replacement, self.seed, self._loops = data_source, replacement, seed, 0
        self.generator = generator
        self.num_samples = len(data_source) if num_samples is None else num_samples
        too_few = num_samples is not None and num_samples < 1
        if too_few or not replacement and self.num_samples > len(data_source):
            raise ValueError(f"[RandomSampler] num_samples {num_samples} is out of range for {len(data_source)} samples")

    def __len__(self) -> int:
        return self.num_samples

    def __iter__(self) -> Iterator[int]:
        if self.replacement:
            generator: Any = {} if self.generator is None else {"generator": self.generator}
            drawn: list[int] = _plugrad.randint(0, len(self.data_source), (self.num_samples,), **generator).tolist()
            return iter(drawn)
        loop, self._loops = self._loops, self._loops + 1
        seed, loop = (draw(self.generator), 0) if self.seed is None else (self.seed, loop)
        return iter(_plugrad._shuffled_rows(len(self.data_source), seed, loop)[:self.num_samples])


class WeightedRandomSampler:
    """num_samples draws of samples, with chances in proportion to their weights: for classes of different sizes.

    Each loop draws anew from the default device's generator. Raises ValueError for negative, infinite or NaN weights, and,
    without replacement, for more draws than positive weights.
    """

    def __init__(self, weights: Sequence[float] | Tensor, num_samples: int, replacement: bool = True) -> None:
        if num_samples < 1:
            raise ValueError(f"[WeightedRandomSampler] num_samples {num_samples} is too small: at least 1 expected")
        self.weights = weights if isinstance(weights, Tensor) else Tensor(weights, dtype="f32", requires_grad=False)
        self.num_samples, self.replacement = num_samples, replacement

    def __len__(self) -> int:
        return self.num_samples

    def __iter__(self) -> Iterator[int]:
        drawn: list[int] = _plugrad.multinomial(self.weights, self.num_samples, self.replacement).tolist()
        return iter(drawn)


class DistributedSampler:
    """The samples of this process, of those that all processes of a group share.

    The order of all samples depends on the seed and the epoch alone, and this process takes each num_replicas-th of them:
    batches of all processes together have the same samples whatever the number of processes. No sample comes twice, so
    validation counts each once; where the number of samples is no multiple, some processes have one sample more. The others
    may then have one batch less, and call step_without_data() of DistributedDataParallel once. drop_last leaves the last
    samples out instead.

    num_replicas and rank are those of the group of all processes by default. Raises ValueError for a rank that does not
    exist.
    """

    def __init__(self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
                 seed: int = 0, drop_last: bool = False) -> None:
        if num_replicas is None or rank is None:
            from . import distributed  # here, because it uses modules that load later
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"[DistributedSampler] rank {rank} of {num_replicas}: a rank below num_replicas expected")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of the next loops; each epoch has one of its own. All processes call it."""
        self.epoch = epoch

    def __len__(self) -> int:
        count = len(self.dataset)
        return count // self.num_replicas + (not self.drop_last and self.rank < count % self.num_replicas)

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        order = _plugrad._shuffled_rows(count, self.seed, self.epoch) if self.shuffle else range(count)
        return iter(order[self.rank::self.num_replicas][:len(self)])


class BatchSampler:
    """A list of a sampler's numbers for each batch."""

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool = False) -> None:
        if batch_size < 1:
            raise ValueError(f"[BatchSampler] batch_size {batch_size} is too small: at least 1 expected")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __len__(self) -> int:
        count = len(self.sampler)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        return chunks(self.sampler, self.batch_size, self.drop_last)
