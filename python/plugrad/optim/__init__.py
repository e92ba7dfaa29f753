"""Optimisers, and schedules of their learning rates (lr_scheduler)."""

from .. import _optimizers
from .._plugrad import SGD, Adam, AdamW, Lion, Optimizer, ParameterGroup, RMSprop
from .._signatures import sign
from . import lr_scheduler as lr_scheduler
from .lbfgs import LBFGS

sign(SGD, Adam, AdamW, Lion, RMSprop)
Optimizer.__repr__ = _optimizers.text  # type: ignore[method-assign]

__all__ = ["LBFGS", "SGD", "Adam", "AdamW", "Lion", "Optimizer", "ParameterGroup", "RMSprop", "lr_scheduler"]
