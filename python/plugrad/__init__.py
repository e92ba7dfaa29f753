"""Tensors with automatic differentiation, on devices that are plugins.

>>> from plugrad import Tensor
>>> x = Tensor([-1.0, 2.0, 3.0])
>>> y = (x.relu() * x).sum()
>>> y.backward()
>>> x.grad
Tensor([0. 4. 6.])
"""

import builtins as _builtins
from typing import Any as _Any

from . import _plugrad
from ._drawing import Dot as Dot, draw_dot as draw_dot
from ._results import MinMax as MinMax, ValuesIndices as ValuesIndices
from ._plugrad import *  # noqa: F403  (everything in the core, also ops added later)
from . import autograd as autograd, data as data, nn as nn, optim as optim, training as training
from .autograd import (Function as Function, checkpoint as checkpoint, detect_anomaly as detect_anomaly,
                       enable_grad as enable_grad, gradcheck as gradcheck, gradgradcheck as gradgradcheck,
                       hessian as hessian, jacobian as jacobian, jvp as jvp, no_grad as no_grad, vjp as vjp)

__version__ = "0.1.0"
# `from plugrad import *` does not replace Python's own sum, min and so on; plugrad.sum exists all the same.
__all__ = sorted({name for name in dir(_plugrad) if not name.startswith("_") and not hasattr(_builtins, name)}
                 | {"Dot", "Function", "MinMax", "ValuesIndices", "autograd", "checkpoint", "data", "detect_anomaly",
                    "draw_dot", "enable_grad", "gradcheck", "gradgradcheck", "hessian", "is_gpu_available", "jacobian",
                    "jvp", "nn", "no_grad", "optim", "tensor", "training", "vjp"})


def tensor(data: _Any, dtype: _Any = None, device: _Any = None, requires_grad: bool = False) -> _plugrad.Tensor:
    """Copies numbers, nested lists or an array. As in PyTorch, whole numbers become i64 and fractions f32 unless dtype is
    given, and the tensor tracks a gradient only if asked to."""
    if dtype is None:
        dtype = _plugrad._dtype_of_numbers(data)
    return _plugrad.Tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


def is_gpu_available() -> bool:
    """Whether there is a GPU of any kind."""
    return _plugrad.Device.is_gpu_available()


def is_available(device: str) -> bool:
    """Whether there is a device of that name. Opens nothing."""
    return (device if ":" in device else f"{device}:0") in _plugrad.devices()
