"""The functions of torch.autograd.functional, as `plugrad.autograd.functional`. plugrad.func has functions that nest.

inputs: a tensor, or a tuple of them; results have the form of inputs. create_graph: the results can be differentiated
again. strict, vectorize: accepted; a result that depends on no input has derivatives of 0, and Jacobians are always computed
at once.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from . import func as _func
from ._modes import no_grad
from ._plugrad import Tensor

_Tensors: TypeAlias = Tensor | Sequence[Tensor]
_Function: TypeAlias = Callable[..., Any]


def _tuple(given: _Tensors) -> tuple[Tensor, ...]:
    return (given,) if isinstance(given, Tensor) else tuple(given)


def _shaped(made: Any, inputs: _Tensors) -> Any:
    return made[0] if isinstance(inputs, Tensor) else made


def _computed(compute: Callable[[], Any], create_graph: bool) -> Any:
    if create_graph:
        return compute()
    with no_grad():
        return compute()


def _v(given: _Tensors | None, results: Any, name: str) -> Any:
    if given is not None:
        return tuple(given) if isinstance(results, tuple) else _tuple(given)[0]
    if not isinstance(results, Tensor) or results.numel() != 1:
        raise ValueError(f"[{name}] v may be left out only if the function returns one number: give a tensor for each "
                         "result")
    return results.detach() * 0 + 1


def vjp(func: _Function, inputs: _Tensors, v: _Tensors | None = None, create_graph: bool = False,
        strict: bool = False) -> tuple[Any, Any]:
    """Returns (results, product of v with the Jacobian)."""
    def compute() -> Any:
        results, pullback = _func.vjp(func, *_tuple(inputs))
        return results, _shaped(pullback(_v(v, results, "vjp")), inputs)
    return _computed(compute, create_graph)  # type: ignore[no-any-return]


def jvp(func: _Function, inputs: _Tensors, v: _Tensors | None = None, create_graph: bool = False,
        strict: bool = False) -> tuple[Any, Any]:
    """Returns (results, product of the Jacobian with v). v may be left out for an input of 1 element."""
    given = _tuple(inputs)
    if v is None and (len(given) > 1 or given[0].numel() != 1):
        raise ValueError("[jvp] v may be left out only for an input of 1 element: give a tensor for each input")
    along = (given[0].detach() * 0 + 1,) if v is None else _tuple(v)
    return _computed(lambda: _func.jvp(func, given, along), create_graph)  # type: ignore[no-any-return]


def jacobian(func: _Function, inputs: _Tensors, create_graph: bool = False, strict: bool = False,
             vectorize: bool = False, strategy: str = "reverse-mode") -> Any:
    """Returns the Jacobian: for each result and each input a tensor of shape (*result's, *input's)."""
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(f"[jacobian] strategy is {strategy!r}: give 'reverse-mode' or 'forward-mode'")
    given = _tuple(inputs)
    transform = _func.jacrev if strategy == "reverse-mode" else _func.jacfwd
    numbers: Any = 0 if isinstance(inputs, Tensor) else tuple(range(len(given)))
    return _computed(lambda: transform(func, numbers)(*given), create_graph)


def hessian(func: _Function, inputs: _Tensors, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
            outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """Returns the second derivatives of a function with one number as its result."""
    given = _tuple(inputs)
    numbers: Any = 0 if isinstance(inputs, Tensor) else tuple(range(len(given)))
    return _computed(lambda: _func.hessian(func, numbers)(*given), create_graph)


def hvp(func: _Function, inputs: _Tensors, v: _Tensors, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Returns (result, product of the Hessian with v) of a function with one number as its result."""
    given = _tuple(inputs)
    both = _func.grad_and_value(func, tuple(range(len(given))))

    def compute() -> Any:
        gradients_and_value, tangents = _func.jvp(both, given, _tuple(v))
        return gradients_and_value[1], _shaped(tangents[0], inputs)
    return _computed(compute, create_graph)  # type: ignore[no-any-return]


def vhp(func: _Function, inputs: _Tensors, v: _Tensors, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The same as hvp: the Hessian is symmetric."""
    return hvp(func, inputs, v, create_graph, strict)
