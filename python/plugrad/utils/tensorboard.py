"""TensorBoard's event files by the names of torch.utils.tensorboard. tensorboardX writes them: pip install tensorboardX.

    from plugrad.utils.tensorboard import SummaryWriter
    with SummaryWriter("runs/first") as writer:
        writer.add_scalar("loss", loss, step)
"""

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

from .._plugrad import Tensor

try:
    _Writer: Any = import_module("tensorboardX").SummaryWriter
except ImportError:
    raise ImportError("[tensorboard] tensorboardX is not installed: pip install tensorboardX") from None

__all__ = ["SummaryWriter"]


def _as_arrays(value: Any) -> Any:
    """The value with NumPy arrays instead of tensors. Waits for the device."""
    if isinstance(value, Tensor):
        host = value.detach().to("cpu")
        return (host.float() if host.dtype in ("bf16", "f16") else host).numpy()
    if isinstance(value, dict):
        return {key: _as_arrays(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_as_arrays(each) for each in value)
    return value


def _taking_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def called(self: Any, *arguments: Any, **named: Any) -> Any:
        return function(self, *map(_as_arrays, arguments), **_as_arrays(named))

    return called


class SummaryWriter(_Writer):  # type: ignore[misc]
    """tensorboardX's writer, whose functions also take plugrad's tensors, on any device."""

    def add_graph(self, model: Any, *_: Any, **__: Any) -> None:
        """Not supported. Raises NotImplementedError."""
        raise NotImplementedError("[tensorboard] graphs are not written: plugrad.draw_dot draws the graph of a result")


for _name in dir(_Writer):
    if _name.startswith("add_") and _name != "add_graph":
        setattr(SummaryWriter, _name, _taking_tensors(getattr(_Writer, _name)))
