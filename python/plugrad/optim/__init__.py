"""Optimisers, and schedules of their learning rates (lr_scheduler)."""

from .. import _optimizers
from .._plugrad import (ASGD, LBFGS, SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, Lion, Muon, NAdam, Optimizer,
                        ParameterGroup, RAdam, RMSprop, Rprop)
from .._signatures import sign
from . import lr_scheduler as lr_scheduler
from . import swa_utils as swa_utils

sign(ASGD, LBFGS, SGD, Adadelta, Adagrad, Adam, AdamW, Adamax, Lion, Muon, NAdam, RAdam, RMSprop, Rprop)
Optimizer.__repr__ = _optimizers.text  # type: ignore[method-assign]

__all__ = ["ASGD", "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Lion", "Muon", "NAdam", "Optimizer",
           "ParameterGroup", "RAdam", "RMSprop", "Rprop", "lr_scheduler", "swa_utils"]
