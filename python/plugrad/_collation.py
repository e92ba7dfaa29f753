"""Batches of samples, by the rules of PyTorch's default_collate."""

import sys
from collections.abc import Mapping, MutableMapping, Sequence
from copy import copy
from typing import Any

from . import _plugrad
from ._plugrad import Tensor

__all__ = ["default_collate", "default_convert"]


def _is_array(x: Any) -> bool:
    """Whether x is an array or a number of NumPy. Does not import NumPy: such an x exists only after its import."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(x, numpy.ndarray | numpy.generic)


def _tensor(data: Any, dtype: str | None = None) -> Tensor:
    return Tensor(data, dtype=dtype or _plugrad._dtype_of_numbers(data), requires_grad=False)


def _of_arrays(samples: Sequence[Any]) -> Tensor:
    import numpy
    if samples[0].dtype.kind not in "biuf":
        raise TypeError(f"[default_collate] arrays of {samples[0].dtype} make no tensors: give the loader a collate_fn")
    return Tensor(numpy.stack(samples), requires_grad=False)


def _is_named(x: Any) -> bool:
    return isinstance(x, tuple) and hasattr(x, "_fields")


def _of_sequences(samples: Sequence[Any]) -> Any:
    first = samples[0]
    if any(len(sample) != len(first) for sample in samples):
        raise RuntimeError(f"[default_collate] the samples have {sorted({len(sample) for sample in samples})} parts: as "
                           "many are expected of each, or a collate_fn")
    parts = [default_collate(part) for part in zip(*samples, strict=True)]
    return type(first)(*parts) if _is_named(first) else _like(first, parts)


def _like(sequence: Any, parts: list[Any]) -> Any:
    """The parts as a sequence of the same type; a list for tuples, as in PyTorch, and for types without a constructor from a
    list."""
    if isinstance(sequence, tuple | range):
        return parts
    try:
        return type(sequence)(parts)
    except TypeError:
        return parts


def _of_mappings(samples: Sequence[Any]) -> Any:
    parts = {key: default_collate([sample[key] for sample in samples]) for key in samples[0]}
    return _mapping_like(samples[0], parts)


def _mapping_like(mapping: Any, parts: dict[Any, Any]) -> Any:
    """The parts in a mapping of the same type, or in a dict if the type cannot be made of a dict."""
    try:
        if not isinstance(mapping, MutableMapping):
            return type(mapping)(parts)
        same = copy(mapping)
        same.update(parts)
        return same
    except TypeError:
        return parts


def default_collate(samples: Sequence[Any]) -> Any:
    """Makes a batch of samples: the structure of a sample, with tensors in the place of its values.

    Tensors and arrays are stacked, with gradients for tensors; ints become i64, floats f64, bools bool; texts and bytes
    stay as they are. Tuples and lists become lists, named tuples and mappings keep their type. Raises RuntimeError for
    sequences of different lengths, and TypeError for anything else.
    """
    first = samples[0]
    if isinstance(first, Tensor):
        return _plugrad.stack(list(samples))
    if _is_array(first):
        return _of_arrays(samples)
    if isinstance(first, float):
        return _tensor(samples, "f64")
    if isinstance(first, int):
        return _tensor(samples)
    if isinstance(first, str | bytes):
        return samples
    if isinstance(first, Mapping):
        return _of_mappings(samples)
    if isinstance(first, Sequence):
        return _of_sequences(samples)
    raise TypeError(f"[default_collate] a sample holds a {type(first).__name__}: tensors, arrays, numbers, texts, and "
                    "lists, tuples and dicts of them are expected, or a collate_fn")


def default_convert(sample: Any) -> Any:
    """Makes tensors of the arrays in a sample, and leaves everything else as it is."""
    if _is_array(sample):
        return Tensor(sample, requires_grad=False) if sample.dtype.kind in "biuf" else sample
    if isinstance(sample, Mapping):
        return _mapping_like(sample, {key: default_convert(value) for key, value in sample.items()})
    if _is_named(sample):
        return type(sample)(*map(default_convert, sample))
    if isinstance(sample, Sequence) and not isinstance(sample, str | bytes):
        return _like(sample, [default_convert(part) for part in sample])
    return sample
