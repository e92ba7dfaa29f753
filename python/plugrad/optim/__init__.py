"""Optimisers, and schedules of their learning rates (lr_scheduler)."""

from .._plugrad import SGD, Adam, AdamW, Lion, Optimizer, ParameterGroup, RMSprop
from . import lr_scheduler as lr_scheduler

__all__ = ["SGD", "Adam", "AdamW", "Lion", "Optimizer", "ParameterGroup", "RMSprop", "lr_scheduler"]
