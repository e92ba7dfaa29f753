"""The device beside the cpu, whichever plugin it comes from, by the names of torch.accelerator."""

from . import _plugrad
from ._plugrad import Device

__all__ = ["current_accelerator", "device_count", "is_available", "synchronize"]


def is_available() -> bool:
    """Whether there is an accelerator."""
    return Device.is_gpu_available()


def current_accelerator() -> Device | None:
    """Returns the first device of CUDA, else the first GPU of any plugin, or None."""
    return Device.gpu() if is_available() else None


def device_count() -> int:
    """Returns the number of the accelerator's plugin's devices; 0 without an accelerator."""
    device = current_accelerator()
    return 0 if device is None else sum(name.partition(":")[0] == device.type for name in _plugrad.devices())


def synchronize() -> None:
    """Waits for all work submitted to the accelerator."""
    device = current_accelerator()
    if device is not None:
        device.synchronize()
