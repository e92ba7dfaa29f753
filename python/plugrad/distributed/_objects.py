"""Collectives of Python objects, by pickle: only for ranks that trust each other, as the ranks of a job do."""

import pickle
from typing import Any

from .. import _plugrad
from .._plugrad import Tensor, _ProcessGroup as ProcessGroup
from ._collectives import all_gather_into_tensor, broadcast
from ._groups import get_process_group_ranks, get_rank, get_world_size


def _bytes_tensor(data: bytes) -> Tensor:
    return Tensor(memoryview(data), dtype="u8", device="cpu")


def _object_in(data: Tensor) -> Any:
    content: Any = data
    return pickle.loads(memoryview(content))


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Writes the object of each rank to the list, which has an element for each."""
    size = get_world_size(group)
    if len(object_list) != size:
        raise ValueError(f"[all_gather_object] a list of {len(object_list)} objects for {size} ranks: {size} expected")
    data = pickle.dumps(obj)
    lengths = _plugrad.zeros((size,), dtype="i64", device="cpu")
    all_gather_into_tensor(lengths, _plugrad.full((1,), len(data), dtype="i64", device="cpu"), group)
    longest = int(lengths.max().item())
    parts = _plugrad.zeros((size, longest), dtype="u8", device="cpu")
    all_gather_into_tensor(parts, _bytes_tensor(data + bytes(longest - len(data))), group)
    for i in range(size):
        object_list[i] = _object_in(parts[i, :int(lengths[i].item())])


def broadcast_object_list(object_list: list[Any], src: int = 0, group: ProcessGroup | None = None) -> None:
    """Overwrites the objects of the list by those of rank `src`."""
    here = get_process_group_ranks(group)[get_rank(group)] == src
    data = pickle.dumps(list(object_list)) if here else b""
    length = _plugrad.full((1,), len(data), dtype="i64", device="cpu")
    broadcast(length, src, group)
    content = _bytes_tensor(data) if here else _plugrad.zeros((int(length.item()),), dtype="u8", device="cpu")
    broadcast(content, src, group)
    if not here:
        object_list[:] = _object_in(content)


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0,
                  group: ProcessGroup | None = None) -> None:
    """Writes the object of each rank to the list of rank `dst`; the other ranks give no list."""
    objects: list[Any] = [None] * get_world_size(group)
    all_gather_object(objects, obj, group)
    if get_process_group_ranks(group)[get_rank(group)] == dst:
        if object_gather_list is None:
            raise ValueError(f"[gather_object] object_gather_list is missing on rank {dst}, which receives")
        object_gather_list[:] = objects
