"""torch.utils, as far as plugrad has it."""

from . import data as data

__all__ = ["data"]
