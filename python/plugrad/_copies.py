"""PyTorch's functions for copies where functions of a similar name return views."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from . import _plugrad
from ._plugrad import Tensor


def _copying(view: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(view)
    def copied(*args: Any, **named: Any) -> Any:
        made = view(*args, **named)
        return made.clone() if isinstance(made, Tensor) else tuple(each.clone() for each in made)
    return copied


as_strided_copy = _copying(_plugrad.as_strided)
diagonal_copy = _copying(_plugrad.diagonal)
expand_copy = _copying(Tensor.expand)
narrow_copy = _copying(_plugrad.narrow)
permute_copy = _copying(Tensor.permute)
split_with_sizes_copy = _copying(_plugrad.split)
squeeze_copy = _copying(_plugrad.squeeze)
t_copy = _copying(Tensor.t)
transpose_copy = _copying(_plugrad.transpose)
unbind_copy = _copying(_plugrad.unbind)
unfold_copy = _copying(Tensor.unfold)
unsqueeze_copy = _copying(_plugrad.unsqueeze)
view_copy = _copying(Tensor.reshape)
