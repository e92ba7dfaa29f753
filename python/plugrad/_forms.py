"""Nested lists, tuples and dicts of tensors and other values."""

import copy
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ._plugrad import Tensor


class Place(NamedTuple):
    """A tensor's place in nested lists, tuples and dicts."""

    at: int


def taken_apart(value: Any, tensors: list[Tensor], others: Callable[[Any], Any]) -> Any:
    """Moves the tensors in nested lists, tuples and dicts to a list; others(value) replaces each other value."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return Place(len(tensors) - 1)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(taken_apart(each, tensors, others) for each in value))
    if isinstance(value, list | tuple):
        return type(value)(taken_apart(each, tensors, others) for each in value)
    if isinstance(value, dict):
        return _with_items(value, ((key, taken_apart(each, tensors, others)) for key, each in value.items()))
    return others(value)


def _with_items(like: dict[Any, Any], items: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """A dict of the same class, such as OrderedDict or defaultdict, with these items."""
    if type(like) is dict:
        return dict(items)
    made = copy.copy(like)
    made.clear()
    made.update(items)
    return made


def put_together(form: Any, tensors: Any) -> Any:
    if isinstance(form, Place):
        return tensors[form.at]
    if isinstance(form, tuple) and hasattr(form, "_fields"):
        return type(form)(*(put_together(each, tensors) for each in form))
    if isinstance(form, list | tuple):
        return type(form)(put_together(each, tensors) for each in form)
    if isinstance(form, dict):
        return _with_items(form, ((key, put_together(each, tensors)) for key, each in form.items()))
    return form
