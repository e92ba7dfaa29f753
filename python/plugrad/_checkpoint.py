"""Recomputation of values in the backward pass."""

import weakref
from collections.abc import Callable
from typing import Any

from . import _plugrad
from ._plugrad import Tensor


class _Result:
    value: Any = None


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
               preserve_rng_state: bool = True, **kwargs: Any) -> Any:
    """Returns function(*args, **kwargs). The ops inside keep no values for the backward pass; the pass calls the function
    again to compute them. This saves memory and costs time.

    Gradients reach the arguments and all tensors that the function refers to, such as parameters. Checkpoints nest. The
    function must do the same each time: the pass raises ValueError if the second call records different ops, or if a used
    leaf or an argument was written in place since. Effects of the function happen twice.

    preserve_rng_state: the second call draws the same random numbers, for example in dropout. use_reentrant has no effect;
    PyTorch's programs pass it.
    """
    places = [place for place, each in enumerate(args) if isinstance(each, Tensor)]
    others = [None if isinstance(each, Tensor) else each for each in args]
    first = _Result()
    kept = weakref.ref(first)  # the second call must not keep its results

    def run(*tensors: Tensor) -> None:
        given = list(others)
        for place, tensor in zip(places, tensors, strict=True):
            given[place] = tensor
        value = function(*given, **kwargs)
        result = kept()
        if result is not None:
            result.value = value

    _plugrad._checkpoint(run, [args[place] for place in places], preserve_rng_state)
    return first.value
