"""The device beside the cpu, whichever plugin it comes from, by the names of torch.accelerator."""

from . import _plugrad
from ._plugrad import Device

__all__ = ["current_accelerator", "device_count", "is_available", "synchronize"]


def _names() -> list[str]:
    """The devices of the first backend that is a GPU."""
    gpus = [name for name in _plugrad.devices() if name.partition(":")[0] in ("cuda", "vulkan")]
    return [name for name in gpus if name.partition(":")[0] == gpus[0].partition(":")[0]]


def device_count() -> int:
    """How many devices the GPU's plugin has; 0 without one. Opens none."""
    return len(_names())


def is_available() -> bool:
    """Whether there is one."""
    return device_count() > 0


def current_accelerator() -> Device | None:
    """The first one, or None."""
    names = _names()
    return Device(names[0]) if names else None


def synchronize() -> None:
    """Waits for what was submitted to it."""
    device = current_accelerator()
    if device is not None:
        device.synchronize()
