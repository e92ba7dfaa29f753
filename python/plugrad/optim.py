"""Optimisers: SGD, Adam, AdamW; and a schedule."""

from ._plugrad import SGD, Adam, AdamW, Optimizer, cosine_rate

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "cosine_rate"]
