"""Data sets, loaders of their batches, and selection of their rows."""

from collections.abc import Sequence
from typing import Any

from . import _plugrad
from ._collation import default_collate as default_collate, default_convert as default_convert
from ._datasets import (ConcatDataset as ConcatDataset, Dataset as Dataset, IterableDataset as IterableDataset,
                        Subset as Subset, TensorDataset as TensorDataset, random_split as random_split)
from ._loader import DataLoader as DataLoader
from ._plugrad import Tensor
from ._samplers import (BatchSampler as BatchSampler, DistributedSampler as DistributedSampler,
                        RandomSampler as RandomSampler, SequentialSampler as SequentialSampler,
                        WeightedRandomSampler as WeightedRandomSampler)

__all__ = ["BatchSampler", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset",
           "RandomSampler", "SequentialSampler", "Subset", "TensorDataset", "WeightedRandomSampler", "cifar10", "cifar100",
           "default_collate", "default_convert", "fashion_mnist", "moons", "random_split", "read_idx", "read_image", "rows"]


def fashion_mnist(directory: Any = None,
                  device: Any = None) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Returns ((images, labels), (test images, test labels)): images (n, 28, 28), f32 in 0 .. 1; labels (n), i64.

    directory: holds the four files under their original names, with or without ".gz"; by default where Debian's package
    dataset-fashion-mnist installs them. Raises OSError, with the command that installs the data, where they are missing.
    """
    return _plugrad._fashion_mnist(directory, device)


def cifar10(directory: Any, device: Any = None) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Returns ((images, labels), (test images, test labels)): images (n, 3, 32, 32), f32 in 0 .. 1; labels (n), i64.

    directory: holds data_batch_1.bin .. data_batch_5.bin and test_batch.bin, the binary version of CIFAR-10. Raises OSError
    where they are missing or damaged.
    """
    return _plugrad._cifar(directory, False, False, device)


def cifar100(directory: Any, coarse: bool = False,
             device: Any = None) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Returns ((images, labels), (test images, test labels)) as cifar10 does, with the classes 0 .. 99 as labels.

    directory: holds train.bin and test.bin, the binary version of CIFAR-100. coarse: labels are the 20 superclasses.
    """
    return _plugrad._cifar(directory, True, coarse, device)


def read_image(path: Any, mode: str = "RGB", scaled: bool = False, device: Any = None) -> Tensor:
    """Reads a picture in any format known to Pillow: (height, width, channels), u8.

    mode: "RGB", "RGBA", or "L" for a single channel of grey. scaled: returns (channels, height, width), f32 in 0 .. 1, as
    networks take it. Raises ImportError without Pillow, and OSError for a missing file or a file without a picture.
    """
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("[read_image] Pillow is not installed: pip install pillow") from None
    channels = {"RGB": 3, "RGBA": 4, "L": 1}
    if mode not in channels:
        raise ValueError(f"[read_image] mode {mode!r} is unknown: RGB, RGBA or L expected")
    with Image.open(path) as opened:
        picture = opened.convert(mode)
    shape = (picture.height, picture.width, channels[mode])
    pixels = Tensor(memoryview(picture.tobytes()).cast("B", shape), device=device)
    return pixels.permute(2, 0, 1).to(dtype="f32") / 255 if scaled else pixels


def moons(count: int = 100, noise: float = 0.1, seed: int = 0,
          device: Any = None) -> tuple[Tensor, Tensor]:
    """Returns (points (count, 2), f32, labels (count), i64): two interleaving half circles; 0 is the upper half circle.

    The same seed gives the same points. Raises ValueError for a negative count or noise.
    """
    return _plugrad._moons(count, noise, seed, device)


def read_idx(path: Any, device: Any = None) -> Tensor:
    """Reads a file of unsigned bytes in the format of MNIST, plain or with gzip, as i64.

    Raises OSError where it is missing or damaged.
    """
    return _plugrad._read_idx(path, device)


def _positions(x: Tensor, chosen: Tensor) -> Tensor:
    """Returns the positions where a mask of x's rows is true; a tensor of integers already holds positions."""
    if chosen.dtype != "bool":
        return _plugrad.where(chosen < 0, chosen + len(x), chosen)
    if chosen.shape != x.shape[:1]:
        raise IndexError(f"[rows] a mask of shape {chosen.shape} for {len(x)} rows: one bool for each row is expected")
    return Tensor([i for i, each in enumerate(chosen.tolist()) if each], dtype="i64", device=x.device)


def rows(x: Tensor, indices: Sequence[int] | Sequence[bool] | Tensor) -> Tensor:
    """Returns x[i] for each i of indices, along the first dim, or the rows where bools are true; gradients flow back.

    Negative indices count from the end. Raises IndexError for an i out of range, and for a mask of another length.
    """
    if not isinstance(indices, Tensor):
        mask = len(indices) > 0 and type(indices[0]).__name__ in ("bool", "bool_")
        indices = Tensor(indices, dtype=None if mask else "i64", device=x.device)
    index = _positions(x, indices)
    if x.ndim == 1:
        return x.gather(0, index)
    flat = x.reshape(x.shape[0], -1)
    picked = flat.gather(0, index.unsqueeze(1).expand(index.shape[0], flat.shape[1]))
    return picked.reshape(index.shape[0], *x.shape[1:])
