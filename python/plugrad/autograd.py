"""Automatic differentiation: all of the package's functions for it, by PyTorch's names."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from . import _plugrad
from . import _autograd_functional as functional
from ._checkpoint import checkpoint as checkpoint
from ._function import Function as Function, FunctionContext as FunctionContext
from ._modes import (detect_anomaly as detect_anomaly, enable_grad as enable_grad, inference_mode as inference_mode,
                     no_grad as no_grad, set_grad_enabled as set_grad_enabled)
from ._plugrad import HookHandle as HookHandle, Tensor, backward as backward, grad as grad, grad_enabled as grad_enabled

_Tensors: TypeAlias = Tensor | Sequence[Tensor]


def _listed(given: _Tensors | None, name: str) -> list[Tensor]:
    if given is None:
        return []
    if isinstance(given, Tensor):
        return [given]
    tensors = list(given)
    for each in tensors:
        if not isinstance(each, Tensor):
            raise TypeError(f"[{name}] expected a Tensor or a tuple of them, not {type(each).__name__}")
    return tensors


class _Listed:
    """A function of lists of tensors, made of a function of tensors. `single`: whether its last result was a tensor."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function, self.name, self.single = function, name, False

    def __call__(self, inputs: list[Tensor]) -> list[Tensor]:
        results = self.function(*inputs)
        self.single = isinstance(results, Tensor)
        return _listed(results, self.name)


def _shaped(tensors: list[Any], single: bool) -> Any:
    return tensors[0] if single else tuple(tensors)


def _product(name: str, function: Callable[..., Any], inputs: _Tensors, v: _Tensors | None,
             create_graph: bool) -> tuple[Any, Any, bool]:
    called = _Listed(function, name)
    compute = getattr(_plugrad, f"_{name}")
    results, products = compute(called, _listed(inputs, name), _listed(v, name), create_graph)
    return _shaped(results, called.single), products, called.single


def vjp(func: Callable[..., Any], inputs: _Tensors, v: _Tensors | None = None,
        create_graph: bool = False) -> tuple[Any, Any]:
    """Returns func's results, and the product of v with its Jacobian: a tensor for each input.

    v: of the shapes of the results; may be left out for a single result of 1 element. inputs: a tensor or a tuple; the
    product is a tuple if inputs is a tuple. create_graph: both have a graph.
    """
    results, products, _ = _product("vjp", func, inputs, v, create_graph)
    return results, _shaped(products, isinstance(inputs, Tensor))


def jvp(func: Callable[..., Any], inputs: _Tensors, v: _Tensors | None = None,
        create_graph: bool = False) -> tuple[Any, Any]:
    """Returns func's results, and the product of its Jacobian with v: a tensor for each result.

    v: of the shapes of the inputs; may be left out for a single input of 1 element. It takes two backward passes.
    """
    given = _listed(inputs, "jvp")
    if v is None and len(given) == 1 and given[0].numel() == 1:
        v = _plugrad.ones_like(given[0].detach())
    results, products, single = _product("jvp", func, given, v, create_graph)
    return results, _shaped(products, single)


def jacobian(func: Callable[..., Any], inputs: _Tensors, create_graph: bool = False) -> Any:
    """Returns the Jacobians: for each result a tuple with a Jacobian for each input, of the result's shape followed by the
    input's. A single result or a single input has no tuple. Takes a backward pass for each element of the results."""
    called = _Listed(func, "jacobian")
    rows = _plugrad._jacobian(called, _listed(inputs, "jacobian"), create_graph)
    return _shaped([_shaped(row, isinstance(inputs, Tensor)) for row in rows], called.single)


def hessian(func: Callable[..., Any], inputs: _Tensors, create_graph: bool = False) -> Any:
    """Returns the second derivatives of a function with a result of 1 element: for each input a tuple with a tensor for each
    input; a tensor for a single input."""
    rows = _plugrad._hessian(_Listed(func, "hessian"), _listed(inputs, "hessian"), create_graph)
    single = isinstance(inputs, Tensor)
    return _shaped([_shaped(row, single) for row in rows], single)


def gradcheck(func: Callable[..., Any], inputs: _Tensors, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
              raise_exception: bool = True) -> bool:
    """Compares func's gradients for the inputs that require a gradient with central differences of step eps.

    Raises ValueError for the first gradient that differs by more than atol + rtol |difference|: its message names result,
    input, their elements and both numbers. Returns False instead if raise_exception is False. The defaults are for f64.
    """
    return _checked(lambda: _plugrad._gradcheck(_Listed(func, "gradcheck"), _listed(inputs, "gradcheck"), eps, atol, rtol),
                    raise_exception)


def gradgradcheck(func: Callable[..., Any], inputs: _Tensors, grad_outputs: _Tensors | None = None, eps: float = 1e-6,
                  atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True) -> bool:
    """The same for the gradients' own gradients, for the inputs and for grad_outputs (chosen if left out)."""
    seeds = _listed(grad_outputs, "gradgradcheck")
    return _checked(lambda: _plugrad._gradgradcheck(_Listed(func, "gradgradcheck"), _listed(inputs, "gradgradcheck"), seeds,
                                                    eps, atol, rtol), raise_exception)


def _checked(check: Callable[[], None], raise_exception: bool) -> bool:
    try:
        check()
    except ValueError:
        if raise_exception:
            raise
        return False
    return True
