"""The part of torch.nn.parallel for a single process with a single device."""

from collections.abc import Sequence
from typing import Any

from .module import Module

__all__ = ["DataParallel"]


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
