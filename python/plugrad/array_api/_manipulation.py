"""Functions that change shapes and the order of elements."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

from .. import _plugrad
from .._plugrad import Tensor

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis",
           "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "tile", "unstack"]


def roll(x: Tensor, /, shift: int | Sequence[int], *, axis: int | Sequence[int] | None = None) -> Tensor:
    """x with its elements moved along axes by as many places as shift says, those at the end to the beginning; without an
    axis, in the order of all elements."""
    return _plugrad.roll(x, shift, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """The tensors, of one shape, along a new axis."""
    return _plugrad.stack(arrays, axis)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that all shapes broadcast to by NumPy's rules. Raises ValueError if there is no such shape."""
    return reduce(_plugrad.broadcast_shapes, shapes, ())


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """Repeats extents of 1 and adds leading axes; a view. Raises ValueError if x does not broadcast to the shape."""
    return x.expand(shape)


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Broadcasts tensors to a common shape; views."""
    shape = broadcast_shapes(*(each.shape for each in arrays))
    return [broadcast_to(each, shape) for each in arrays]


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Joins tensors along an axis. axis=None flattens the tensors first. The dtypes are promoted."""
    if axis is None:
        return _plugrad.cat([each.flatten() for each in arrays], 0)
    return _plugrad.cat(list(arrays), axis)


def expand_dims(x: Tensor, /, axis: int = 0) -> Tensor:
    """Inserts an axis of extent 1 as axis number `axis` of the result; a view. Raises IndexError for an axis out of
    range."""
    if not -x.ndim - 1 <= axis <= x.ndim:
        raise IndexError(f"[expand_dims] axis {axis} is out of range for a result of {x.ndim + 1} axes")
    return x.unsqueeze(axis)


def flip(x: Tensor, /, *, axis: int | Sequence[int] | None = None) -> Tensor:
    """Reverses the order of elements along the given axes, or along all axes; a view."""
    return _plugrad.flip(x, tuple(range(x.ndim)) if axis is None else axis)


def moveaxis(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int], /) -> Tensor:
    """Moves axes to other positions; the remaining axes keep their order. A view."""
    return _plugrad.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """Permutes the axes: axis i of the result is axis axes[i] of x. A view."""
    return x.permute(axes)


def _repeated_each(x: Tensor, repeats: Tensor, axis: int) -> Tensor:
    """Repeats each element along the axis by the count for its position."""
    counts = repeats.expand((x.shape[axis],)).tolist()
    positions = [i for i, count in enumerate(counts) for _ in range(count)]
    shape, along = list(x.shape), [1] * x.ndim
    shape[axis] = along[axis] = len(positions)
    index = Tensor(positions, dtype="i64", device=x.device, requires_grad=False)
    return x.gather(axis, index.reshape(along).expand(shape))


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Repeats each element along an axis, or each element of the flattened tensor. repeats: the count, or a tensor with a
    count for each position along the axis. plugrad.repeat follows PyTorch and repeats the whole tensor, as tile does."""
    if axis is None:
        x, axis = x.flatten(), 0
    if isinstance(repeats, Tensor):
        return _repeated_each(x, repeats, axis)
    return _plugrad.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: int | Sequence[int], *, copy: bool | None = None) -> Tensor:
    """Returns the elements in another shape; one extent may be -1. copy: True always copies; None copies if the strides
    require it; False raises ValueError if the strides require a copy."""
    if copy:
        return x.clone().reshape(shape)
    made = x.reshape(shape)
    if copy is False and x.numel() and made.data_ptr() != x.data_ptr():
        raise ValueError(f"[reshape] a tensor of strides {x.strides} needs a copy, which copy=False forbids: leave copy out")
    return made


def squeeze(x: Tensor, /, axis: int | Sequence[int]) -> Tensor:
    """Removes the given axes; a view. Raises ValueError for an axis whose extent is not 1."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for each in axes:
        if x.shape[each] != 1:
            raise ValueError(f"[squeeze] axis {each} of a tensor of shape {x.shape} cannot be removed: its extent is not 1")
    return x.squeeze(axes) if axes else x


def tile(x: Tensor, repetitions: Sequence[int], /) -> Tensor:
    """Repeats the whole of x along each axis."""
    return _plugrad.tile(x, repetitions)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts of x along an axis, without that axis; views."""
    return tuple(x.select(axis, i) for i in range(x.shape[axis]))
