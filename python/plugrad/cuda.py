"""What programs written for PyTorch ask of CUDA before they choose a device."""

from . import _plugrad

__all__ = ["device_count", "is_available"]


def device_count() -> int:
    """How many devices the CUDA plugin has; 0 without it. Opens none."""
    return sum(name.startswith("cuda:") for name in _plugrad.devices())


def is_available() -> bool:
    """Whether there is one."""
    return device_count() > 0
