"""Collectives of tensors.

With async_op a collective returns a Work at once, else None after the end. `src` and `dst` are ranks of the group of all
processes.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Protocol

from .. import _plugrad
from .._plugrad import Tensor, _ProcessGroup as ProcessGroup
from ..autograd import no_grad
from ._groups import get_process_group_ranks, get_rank, get_world_size


class ReduceOp(IntEnum):
    """How a reduction combines elements. AVG: of floating dtypes."""

    SUM = 0
    MIN = 1
    MAX = 2
    PRODUCT = 3
    AVG = 4


class Work(Protocol):
    """A started collective. Do not read or write its tensors before wait() returns."""

    def wait(self) -> bool:
        """Waits for the end, and returns True. Raises ConnectionError or TimeoutError."""

    def is_completed(self) -> bool:
        """Whether wait() would return at once."""


class _Followed:
    """A work, or several, with something to do after the end, on the thread that waits."""

    def __init__(self, works: Sequence[Work], then: Callable[[], object]) -> None:
        self._works = list(works)
        self._then: Callable[[], object] | None = then

    def wait(self) -> bool:
        while self._works:
            self._works[0].wait()
            del self._works[0]
        then, self._then = self._then, None
        if then is not None:
            then()
        return True

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)


def _ended(work: Work, async_op: bool) -> Work | None:
    if async_op:
        return work
    work.wait()
    return None


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False, *,
               ordered: bool = False) -> Work | None:
    """Reduces the tensor over all ranks, in place.

    ordered: adds as a binary tree over the ranks, f16 and bf16 in f32. The bits then depend neither on the communicator nor
    on how many elements one call reduces. use_deterministic_algorithms(True) does the same.
    """
    return _ended(_plugrad._all_reduce(tensor, op, group, ordered), async_op)


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None,
           async_op: bool = False) -> Work | None:
    """Reduces the tensor over all ranks, in place on rank `dst`; the tensors of the others stay."""
    here = get_process_group_ranks(group)[get_rank(group)] == dst
    target = tensor if here else tensor.detach().clone()
    return all_reduce(target, op, group, async_op)


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None, async_op: bool = False) -> Work | None:
    """Overwrites the tensor by the tensor of rank `src`."""
    return _ended(_plugrad._broadcast(tensor, src, group), async_op)


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None,
                           async_op: bool = False) -> Work | None:
    """Joins the inputs of all ranks, in the order of ranks; the output has as many times more elements."""
    return _ended(_plugrad._all_gather(output_tensor, input_tensor, group), async_op)


def all_gather(tensor_list: Sequence[Tensor], tensor: Tensor, group: ProcessGroup | None = None,
               async_op: bool = False) -> Work | None:
    """Writes the tensor of each rank to the list, in the order of ranks."""
    _require_count("all_gather", tensor_list, get_world_size(group))
    joined = _plugrad.empty((len(tensor_list), *tensor.shape), dtype=tensor.dtype, device=tensor.device)
    work = _plugrad._all_gather(joined, tensor, group)
    return _ended(_Followed([work], lambda: _spread(joined, tensor_list)), async_op)


def gather(tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int = 0, group: ProcessGroup | None = None,
           async_op: bool = False) -> Work | None:
    """Writes the tensor of each rank to the list of rank `dst`; the other ranks give no list."""
    ranks = get_process_group_ranks(group)
    if ranks[get_rank(group)] != dst:
        return _ended(_plugrad._send(tensor, dst, group), async_op)
    if gather_list is None:
        raise ValueError(f"[gather] gather_list is missing on rank {dst}, which receives")
    _require_count("gather", gather_list, len(ranks))
    works = [_plugrad._recv(to, rank, group) for rank, to in zip(ranks, gather_list) if rank != dst]
    own = gather_list[ranks.index(dst)]
    return _ended(_Followed(works, lambda: _write(own, tensor)), async_op)


def scatter(tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int = 0, group: ProcessGroup | None = None,
            async_op: bool = False) -> Work | None:
    """Writes to each rank's tensor its element of the list of rank `src`; the other ranks give no list."""
    ranks = get_process_group_ranks(group)
    if ranks[get_rank(group)] != src:
        return _ended(_plugrad._recv(tensor, src, group), async_op)
    if scatter_list is None:
        raise ValueError(f"[scatter] scatter_list is missing on rank {src}, which sends")
    _require_count("scatter", scatter_list, len(ranks))
    works = [_plugrad._send(part, rank, group) for rank, part in zip(ranks, scatter_list) if rank != src]
    own = scatter_list[ranks.index(src)]
    return _ended(_Followed(works, lambda: _write(tensor, own)), async_op)


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None,
                          async_op: bool = False, *, ordered: bool = False) -> Work | None:
    """Reduces the input over all ranks; block r of the result becomes the output of rank r. ordered: as for all_reduce."""
    return _ended(_plugrad._reduce_scatter(output, input, op, group, ordered), async_op)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM,
                   group: ProcessGroup | None = None, async_op: bool = False) -> Work | None:
    """Reduces the list over all ranks; element r of the result becomes the output of rank r."""
    _require_count("reduce_scatter", input_list, get_world_size(group))
    return reduce_scatter_tensor(output, _plugrad.stack(list(input_list)).detach(), op, group, async_op)


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
                      input_split_sizes: Sequence[int] | None = None, group: ProcessGroup | None = None,
                      async_op: bool = False) -> Work | None:
    """Sends block r of the input to rank r; block r of the output is of rank r.

    The blocks are parts of the first axis: equal parts, or of the given numbers of rows.
    """
    work = _plugrad._all_to_all(output, input, list(output_split_sizes or ()), list(input_split_sizes or ()), group)
    return _ended(work, async_op)


def all_to_all(output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: ProcessGroup | None = None,
               async_op: bool = False) -> Work | None:
    """Sends element r of the input list to rank r; element r of the output list is of rank r. Sizes may differ."""
    size = get_world_size(group)
    _require_count("all_to_all", output_tensor_list, size)
    _require_count("all_to_all", input_tensor_list, size)
    sent = _plugrad.cat([each.detach().reshape(-1) for each in input_tensor_list])
    counts = [each.numel() for each in output_tensor_list]
    received = _plugrad.empty((sum(counts),), dtype=sent.dtype, device=sent.device)
    work = _plugrad._all_to_all(received, sent, counts, [each.numel() for each in input_tensor_list], group)

    def spread() -> None:
        for to, part in zip(output_tensor_list, received.split(counts)):
            _write(to, part.reshape(to.shape))
    return _ended(_Followed([work], spread), async_op)


def send(tensor: Tensor, dst: int, group: ProcessGroup | None = None) -> None:
    """Sends the tensor to rank `dst`. Sends and receives of two ranks match in their order."""
    _plugrad._send(tensor, dst, group).wait()


def recv(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> int:
    """Receives the tensor of rank `src`, and returns `src`."""
    _plugrad._recv(tensor, src, group).wait()
    return src


def isend(tensor: Tensor, dst: int, group: ProcessGroup | None = None) -> Work:
    """Starts a send."""
    return _plugrad._send(tensor, dst, group)


def irecv(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> Work:
    """Starts a receive."""
    return _plugrad._recv(tensor, src, group)


def barrier(group: ProcessGroup | None = None, async_op: bool = False) -> Work | None:
    """Waits until all ranks have called it."""
    return _ended(_plugrad._barrier(group), async_op)


def _require_count(name: str, tensors: Sequence[Tensor], size: int) -> None:
    if len(tensors) != size:
        raise ValueError(f"[{name}] a list of {len(tensors)} tensors for {size} ranks: {size} tensors expected")


def _write(to: Tensor, source: Tensor) -> None:
    with no_grad():
        to.copy_(source)


def _spread(joined: Tensor, tensors: Sequence[Tensor]) -> None:
    for to, part in zip(tensors, joined):
        _write(to, part)
