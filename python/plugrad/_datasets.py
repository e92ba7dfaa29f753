"""Data sets: samples by number."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

from . import _plugrad
from ._generator import Generator, draw
from ._plugrad import Tensor

_Sample = TypeVar("_Sample", covariant=True)

__all__ = ["ConcatDataset", "Dataset", "IterableDataset", "Subset", "TensorDataset", "random_split"]


class Dataset(Generic[_Sample]):
    """A source of samples for a DataLoader: a class with `__len__`, and `__getitem__` for the sample of a number. The class
    need not derive from Dataset. A loader with workers calls `__getitem__` from several threads at once."""

    def __len__(self) -> int:
        raise NotImplementedError(f"[{type(self).__name__}] a data set needs __len__, the number of samples")

    def __getitem__(self, index: int) -> _Sample:
        raise NotImplementedError(f"[{type(self).__name__}] a data set needs __getitem__, which returns a sample")

    def __add__(self, other: Any) -> "ConcatDataset":
        """Returns the samples of this data set followed by the samples of `other`."""
        return ConcatDataset([self, other])


class IterableDataset(Generic[_Sample]):
    """A data set without numbers of samples: a class with `__iter__`. A DataLoader takes any iterable in its place."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"[{type(self).__name__}] an iterable data set needs __iter__, which yields samples")


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The rows of tensors with equal first extents: sample i is a tuple of row i of each.

    A loader copies the rows of a batch in a single step for each tensor. Gradients flow back to the tensors. Raises
    ValueError for tensors without rows and for different numbers of rows.
    """

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors or any(x.ndim == 0 for x in tensors):
            raise ValueError("[TensorDataset] at least one tensor is expected, and none of rank 0")
        if any(len(x) != len(tensors[0]) for x in tensors):
            raise ValueError(f"[TensorDataset] the tensors have {[len(x) for x in tensors]} rows: as many are expected of "
                             "each")
        self.tensors = tensors

    def __len__(self) -> int:
        return len(self.tensors[0])

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(x[index] for x in self.tensors)

    def rows(self, numbers: Sequence[int]) -> list[Tensor]:
        """Returns the samples of these numbers as a batch."""
        index = {device: Tensor(numbers, dtype="i64", device=device) for device in {x.device for x in self.tensors}}
        return [x.index_select(0, index[x.device]) for x in self.tensors]


class Subset(Dataset[Any]):
    """The samples of a data set with these numbers, in their order."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def rows(self, numbers: Sequence[int]) -> list[Tensor]:
        """Returns the samples of these numbers as a batch. The inner data set must be a TensorDataset."""
        batch: list[Tensor] = self.dataset.rows([self.indices[i] for i in numbers])
        return batch


class ConcatDataset(Dataset[Any]):
    """The samples of several data sets in succession. Negative numbers count from the end."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        self.cumulative_sizes = list(accumulate(map(len, self.datasets)))
        if not self.datasets:
            raise ValueError("[ConcatDataset] no data sets were given")

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(f"[ConcatDataset] sample {index} is out of range for {len(self)} samples")
        at = bisect_right(self.cumulative_sizes, place)
        return self.datasets[at][place - (self.cumulative_sizes[at - 1] if at else 0)]


def _getitem(dataset: Any) -> Any:
    return getattr(type(dataset), "__getitem__", None)


def reader_of_rows(dataset: Any) -> Any:
    """Returns the method `rows` if it has the same results as __getitem__: for a TensorDataset or its Subsets. Else None."""
    inner = dataset
    while _getitem(inner) is Subset.__getitem__:
        inner = inner.dataset
    return dataset.rows if _getitem(inner) is TensorDataset.__getitem__ else None


def _counts(total: int, lengths: Sequence[int | float]) -> list[int]:
    """The lengths of the parts. Fractions that sum to 1 are rounded down, and the first parts get the remaining samples."""
    if any(length < 0 for length in lengths):
        raise ValueError("[random_split] a length is negative")
    if all(isinstance(length, int) for length in lengths) or abs(sum(lengths) - 1) > 1e-6:
        counts = [int(length) for length in lengths]
    else:
        counts = [int(total * length) for length in lengths]
        for i in range(total - sum(counts)):
            counts[i % len(counts)] += 1
    if sum(counts) != total or any(count != length for count, length in zip(counts, lengths) if isinstance(length, int)):
        raise ValueError(f"[random_split] lengths {list(lengths)} of {total} samples: numbers that sum to {total}, or "
                         "fractions that sum to 1, are expected")
    return counts


def random_split(dataset: Any, lengths: Sequence[int | float], generator: Generator | None = None, *,
                 seed: int | None = None) -> list[Subset]:
    """Divides a data set at random into parts of these lengths, or of these fractions of it. The generator decides, by
    default the default device's; with a seed, the seed alone.

    Raises ValueError if lengths do not sum to the length of the data set, or if fractions do not sum to 1.
    """
    order = _plugrad._shuffled_rows(len(dataset), draw(generator) if seed is None else seed, 0)
    parts, first = [], 0
    for count in _counts(len(dataset), lengths):
        parts.append(Subset(dataset, order[first:first + count]))
        first += count
    return parts
