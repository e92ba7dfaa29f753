"""Data sets, and rows of them."""

from collections.abc import Sequence

from . import _plugrad
from ._plugrad import Tensor

__all__ = ["fashion_mnist", "moons", "read_idx", "rows"]


def fashion_mnist(directory=None, device=None):
    """((images, labels), (test images, test labels)): images (n, 28, 28), f32 in 0 .. 1; labels (n), i64.

    directory: with the four files under their original names, with or without ".gz"; by default where Debian's package
    dataset-fashion-mnist puts them. OSError, with the command that installs the data, where there is none.
    """
    return _plugrad._fashion_mnist(directory, device)


def moons(count: int = 100, noise: float = 0.1, seed: int = 0, device=None):
    """(points (count, 2), labels (count)): two interleaving half circles, f32; 0 is the upper one, i64. The same seed gives the same
    points. ValueError for a negative count or noise."""
    return _plugrad._moons(count, noise, seed, device)


def read_idx(path, device=None) -> Tensor:
    """A file in the format of MNIST, plain or with gzip, of unsigned bytes: as i64. OSError where it is missing or damaged."""
    return _plugrad._read_idx(path, device)


def rows(x: Tensor, indices: Sequence[int] | Tensor) -> Tensor:
    """x[i] for each i of indices, along the first dim; gradients flow back. IndexError for one that is out of range."""
    index = indices if isinstance(indices, Tensor) else Tensor(indices, dtype="i64", device=x.device)
    if x.ndim == 1:
        return x.gather(0, index)
    flat = x.reshape(x.shape[0], -1)
    picked = flat.gather(0, index.unsqueeze(1).expand(index.shape[0], flat.shape[1]))
    return picked.reshape(index.shape[0], *x.shape[1:])
