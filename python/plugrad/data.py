"""Data sets, and selection of their rows."""

from collections.abc import Sequence

from . import _plugrad
from ._plugrad import Tensor

__all__ = ["fashion_mnist", "moons", "read_idx", "rows"]


def fashion_mnist(directory=None, device=None):
    """Returns ((images, labels), (test images, test labels)): images (n, 28, 28), f32 in 0 .. 1; labels (n), i64.

    directory: holds the four files under their original names, with or without ".gz"; by default where Debian's package
    dataset-fashion-mnist installs them. Raises OSError, with the command that installs the data, where they are missing.
    """
    return _plugrad._fashion_mnist(directory, device)


def moons(count: int = 100, noise: float = 0.1, seed: int = 0, device=None):
    """Returns (points (count, 2), f32, labels (count), i64): two interleaving half circles, of which 0 is the upper one.

    The same seed gives the same points. Raises ValueError for a negative count or noise.
    """
    return _plugrad._moons(count, noise, seed, device)


def read_idx(path, device=None) -> Tensor:
    """Reads a file of unsigned bytes in the format of MNIST, plain or with gzip, as i64.

    Raises OSError where it is missing or damaged.
    """
    return _plugrad._read_idx(path, device)


def rows(x: Tensor, indices: Sequence[int] | Tensor) -> Tensor:
    """Returns x[i] for each i of indices, along the first dim; gradients flow back. IndexError for an i out of range."""
    index = indices if isinstance(indices, Tensor) else Tensor(indices, dtype="i64", device=x.device)
    if x.ndim == 1:
        return x.gather(0, index)
    flat = x.reshape(x.shape[0], -1)
    picked = flat.gather(0, index.unsqueeze(1).expand(index.shape[0], flat.shape[1]))
    return picked.reshape(index.shape[0], *x.shape[1:])
