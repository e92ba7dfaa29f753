"""torch.cuda's functions for programs written for PyTorch. `is_available` returns False without the CUDA plugin."""

from typing import Any

from .. import _plugrad
from .._plugrad import Device
from . import amp as amp

__all__ = ["amp", "current_device", "device_count", "empty_cache", "get_device_name", "is_available", "manual_seed",
           "manual_seed_all", "max_memory_allocated", "memory_allocated", "reset_peak_memory_stats", "synchronize"]


def device_count() -> int:
    """Returns the number of the CUDA plugin's devices; 0 without the plugin. Opens no device."""
    return sum(name.startswith("cuda:") for name in _plugrad.devices())


def is_available() -> bool:
    """Returns whether there is a CUDA device."""
    return device_count() > 0


def _device(given: Any) -> Device:
    if isinstance(given, Device):
        return given
    return Device("cuda:0" if given is None else f"cuda:{given}" if isinstance(given, int) else given)


def current_device() -> int:
    """Returns 0, the number of the device "cuda"."""
    return 0


def get_device_name(device: Any = None) -> str:
    """Returns the usual name of the hardware."""
    return _device(device).description


def synchronize(device: Any = None) -> None:
    """Waits for all work submitted to the device."""
    _device(device).synchronize()


def empty_cache() -> None:
    """Releases cached memory of all CUDA devices; does nothing without a CUDA device."""
    for i in range(device_count()):
        Device(f"cuda:{i}").trim()


def memory_allocated(device: Any = None) -> int:
    """Returns the bytes of the device's memory in use."""
    return _device(device).memory().active


def max_memory_allocated(device: Any = None) -> int:
    """Returns the maximum of bytes in use since reset_peak_memory_stats."""
    return _device(device).memory().peak


def reset_peak_memory_stats(device: Any = None) -> None:
    """Resets the peak to the bytes in use now."""
    _device(device).reset_peak()


def manual_seed(seed: int) -> None:
    """Seeds the generators of all devices."""
    _plugrad.manual_seed(seed)


manual_seed_all = manual_seed
