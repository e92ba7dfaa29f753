"""The part of torch.utils that plugrad has."""

from . import data as data

__all__ = ["data"]
