"""The device beside the cpu, whichever plugin it comes from, by the names of torch.accelerator."""

from . import _plugrad
from ._plugrad import Device

__all__ = ["current_accelerator", "device_count", "is_available", "synchronize"]


def is_available() -> bool:
    """Whether there is one."""
    return Device.is_gpu_available()


def current_accelerator() -> Device | None:
    """The first one of CUDA, else the first one of another plugin, or None."""
    return Device.gpu() if is_available() else None


def device_count() -> int:
    """How many devices its plugin has; 0 without one."""
    device = current_accelerator()
    return 0 if device is None else sum(name.partition(":")[0] == device.type for name in _plugrad.devices())


def synchronize() -> None:
    """Waits for what was submitted to it."""
    device = current_accelerator()
    if device is not None:
        device.synchronize()
