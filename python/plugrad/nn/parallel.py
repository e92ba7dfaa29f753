"""Training on several processes, by the names of torch.nn.parallel. A process has one device."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .. import _plugrad
from .._plugrad import Tensor, _ProcessGroup as ProcessGroup
from .module import Module

__all__ = ["DataParallel", "DistributedDataParallel"]


class DataParallel(Module):
    """Calls a module. The names of its parameters begin with "module.", as in PyTorch.

    Raises NotImplementedError for several devices.
    """

    def __init__(self, module: Module, device_ids: Sequence[Any] | None = None) -> None:
        if device_ids is not None and len(device_ids) > 1:
            raise NotImplementedError(f"[DataParallel] {len(device_ids)} devices were given: plugrad runs a module on one")
        self.module = module

    def forward(self, *arguments: Any, **named: Any) -> Any:
        return self.module(*arguments, **named)


class DistributedDataParallel(Module):
    """Calls a module on each process of a group, and makes gradients the mean over all processes.

    Each process computes its part of a batch. During backward(), gradients travel in buckets while the pass goes on; after
    it, each parameter has the mean of all processes' gradients, weighted by the numbers of samples: the extent of the first
    tensor that the module is called with, along `dim`. So the last batches may differ in size. Parameters that no process
    used have no gradient, and those that some used have the mean with zeros. All processes make the same number of steps: a
    process without data calls step_without_data().

    bucket_cap_mb: the size of the buckets; 4 by default. broadcast_buffers: forward() while training overwrites the buffers,
    such as running means, by those of rank 0.
    slices: the number of backward passes of all processes together that make up one step, a multiple of the number of
    processes. Their gradients are added as a binary tree, so the bits depend neither on the number of processes (of powers
    of two) nor on the communicator nor on the buckets. A process then calls backward() `passes` times for each step of the
    optimiser.
    PyTorch's find_unused_parameters, gradient_as_bucket_view, static_graph and check_reduction change nothing: none is
    needed.

    Parameters and buffers become those of rank 0. Raises ValueError if the parameters of the processes differ in number,
    shape or dtype, and NotImplementedError for several devices of one process.
    """

    def __init__(self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0,
                 broadcast_buffers: bool = True, process_group: ProcessGroup | None = None,
                 bucket_cap_mb: float | None = None, find_unused_parameters: bool = False, check_reduction: bool = False,
                 gradient_as_bucket_view: bool = False, static_graph: bool = False, *, slices: int = 0) -> None:
        if device_ids is not None and len(device_ids) > 1:
            raise NotImplementedError(
                f"[DistributedDataParallel] {len(device_ids)} devices were given: a process trains on one device")
        if bucket_cap_mb is not None and not bucket_cap_mb > 0:
            raise ValueError(f"[DistributedDataParallel] bucket_cap_mb is {bucket_cap_mb}: a positive number expected")
        self.module = module
        self.dim, self.broadcast_buffers = dim, broadcast_buffers
        bucket_bytes = int((4 if bucket_cap_mb is None else bucket_cap_mb) * 2**20)
        self._reducer = _plugrad._DataParallel(list(module.parameters()), list(module.buffers()), process_group,
                                               bucket_bytes, slices)

    @property
    def passes(self) -> int:
        """How many backward passes of this process make up a step; 1 without slices."""
        return self._reducer.passes()

    def forward(self, *arguments: Any, **named: Any) -> Any:
        if self.training and self._reducer.synchronizing():
            if self.broadcast_buffers:
                self._reducer.broadcast_buffers()
            samples = next((x.shape[self.dim] for x in (*arguments, *named.values()) if isinstance(x, Tensor) and x.ndim), 1)
            if samples:
                self._reducer.set_weight(samples)
        return self.module(*arguments, **named)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within it, gradients only accumulate on this process; the next backward() outside reduces their sum."""
        before = self._reducer.synchronizing()
        self._reducer.set_synchronizing(False)
        try:
            yield
        finally:
            self._reducer.set_synchronizing(before)

    def _parts(self, rows: int, shared: bool) -> list[slice]:
        """Divides the rows of a batch, of this process or shared by all, into those of the passes of this process."""
        rank, size = (self._reducer.rank(), self._reducer.size()) if shared else (0, 1)
        first, parts = rank * self.passes, size * self.passes
        return [slice(rows * i // parts, rows * (i + 1) // parts) for i in range(first, first + self.passes)]

    def pass_without_data(self) -> None:
        """Takes part in one backward pass of a step with nothing."""
        if self.training and self.broadcast_buffers:
            self._reducer.broadcast_buffers()
        self._reducer.pass_without_data()

    def step_without_data(self) -> bool:
        """Takes part in a step with nothing: the gradients become the mean of the other processes'.

        Returns whether any process had data.
        """
        if self.training and self.broadcast_buffers:
            self._reducer.broadcast_buffers()
        return self._reducer.step_without_data()
