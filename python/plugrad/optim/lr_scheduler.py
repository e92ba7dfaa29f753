"""Schedules of learning rates, with PyTorch's names and formulas. The constructor of a schedule sets the rates for epoch 0,
and each step() sets the rates for the next epoch."""

from .._plugrad import (ConstantLR, CosineAnnealingLR, CosineAnnealingWarmRestarts, CyclicLR, ExponentialLR, LambdaLR,
                        LinearLR, LRScheduler, MultiStepLR, OneCycleLR, PolynomialLR, ReduceLROnPlateau, SequentialLR,
                        StepLR)

__all__ = ["ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LRScheduler",
           "LambdaLR", "LinearLR", "MultiStepLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR",
           "StepLR"]
