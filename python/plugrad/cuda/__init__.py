"""What programs written for PyTorch ask of CUDA. Those that choose a device do not need it: `is_available` is False then."""

from typing import Any

from .. import _plugrad
from .._plugrad import Device
from . import amp as amp

__all__ = ["amp", "current_device", "device_count", "empty_cache", "get_device_name", "is_available", "manual_seed",
           "manual_seed_all", "max_memory_allocated", "memory_allocated", "reset_peak_memory_stats", "synchronize"]


def device_count() -> int:
    """How many devices the CUDA plugin has; 0 without it. Opens none."""
    return sum(name.startswith("cuda:") for name in _plugrad.devices())


def is_available() -> bool:
    """Whether there is one."""
    return device_count() > 0


def _device(given: Any) -> Device:
    if isinstance(given, Device):
        return given
    return Device("cuda:0" if given is None else f"cuda:{given}" if isinstance(given, int) else given)


def current_device() -> int:
    """The number of the device that "cuda" names: 0."""
    return 0


def get_device_name(device: Any = None) -> str:
    """The name that people know the hardware by."""
    return _device(device).description


def synchronize(device: Any = None) -> None:
    """Waits for everything that was submitted to the device."""
    _device(device).synchronize()


def empty_cache() -> None:
    """Returns cached memory of all CUDA devices; does nothing without one."""
    for i in range(device_count()):
        Device(f"cuda:{i}").trim()


def memory_allocated(device: Any = None) -> int:
    """Bytes of the device's memory in use."""
    return _device(device).memory().active


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes in use at once."""
    return _device(device).memory().peak


def reset_peak_memory_stats(device: Any = None) -> None:
    """Starts counting the peak again."""
    _device(device).reset_peak()


def manual_seed(seed: int) -> None:
    """Seeds the generators of all devices."""
    _plugrad.manual_seed(seed)


manual_seed_all = manual_seed
