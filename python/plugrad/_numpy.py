"""NumPy's functions on tensors."""

import operator
from collections.abc import Callable
from typing import Any

from . import _plugrad
from ._plugrad import Tensor

# Where plugrad's op, or Python's operator, has another name than NumPy's function.
_OPS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "true_divide": operator.truediv, "power": operator.pow, "matmul": operator.matmul, "negative": operator.neg,
    "positive": operator.pos, "absolute": operator.abs, "equal": operator.eq, "not_equal": operator.ne,
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge}


def _arrays(given: Any) -> Any:
    """The same with arrays in place of tensors."""
    if isinstance(given, Tensor):
        return given.numpy()
    if isinstance(given, (list, tuple)):
        return type(given)(map(_arrays, given))
    return {name: _arrays(each) for name, each in given.items()} if isinstance(given, dict) else given


def _operand(given: Any, beside: Tensor) -> Any:
    """Numbers and tensors for NumPy's: its operators would call NumPy again."""
    import numpy
    if isinstance(given, (numpy.generic, numpy.ndarray)) and given.ndim == 0:
        return given.item()
    return Tensor(given, device=beside.device, requires_grad=False) if isinstance(given, numpy.ndarray) else given


def ufunc(self: Tensor, function: Any, method: str, *inputs: Any, **named: Any) -> Any:
    """Calls plugrad's op if there is such an op, else NumPy's function of arrays, unless a gradient would be lost."""
    op = _OPS.get(function.__name__) or getattr(_plugrad, function.__name__, None)
    if op is not None and method == "__call__" and not named:
        return op(*(_operand(each, self) for each in inputs))
    _require_untracked(function, inputs)
    return getattr(function, method)(*_arrays(inputs), **_arrays(named))


def _is_tracked(given: Any) -> bool:
    if isinstance(given, (list, tuple)):
        return any(map(_is_tracked, given))
    return isinstance(given, Tensor) and given.requires_grad


def _require_untracked(function: Callable[..., Any], inputs: Any) -> None:
    if _plugrad.grad_enabled() and _is_tracked(inputs):
        raise TypeError(f"[numpy.{function.__name__}] NumPy would lose the gradient of this tensor: use an op of plugrad, "
                        "or pass tensor.detach().numpy()")


def function(self: Tensor, called: Callable[..., Any], types: Any, inputs: Any, named: Any) -> Any:
    """Calls NumPy's function of arrays. Raises TypeError if a floating result would lose the gradient of a tensor."""
    result = called(*_arrays(inputs), **_arrays(named))
    if getattr(getattr(result, "dtype", None), "kind", "") == "f":
        _require_untracked(called, inputs)
    return result
