"""Calls of modules with other tensors in place of their own."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from . import _plugrad
from ._plugrad import Tensor


def functional_call(module: Any, parameters_and_buffer_dicts: Any, args: Any = None, kwargs: Any = None, *,
                    strict: bool = False) -> Any:
    """Calls a module with other tensors in place of its parameters and buffers, by their names.

    parameters_and_buffer_dicts: a dict, or several whose names differ. args: the arguments: a tuple, or a single one.
    strict: raises ValueError if a name is missing. Raises ValueError for an unknown name. Afterwards the module is as it
    was.
    """
    given = parameters_and_buffer_dicts
    values: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {k: v for each in given for k, v in each.items()}
    positional = args if isinstance(args, tuple) else () if args is None else (args,)
    with _replaced(module, values, strict):
        return module(*positional, **(kwargs or {}))


@contextmanager
def _replaced(module: Any, values: dict[str, Any], strict: bool) -> Iterator[None]:
    owners = {}
    for name, _ in _named_tensors(module):
        path, _, last = name.rpartition(".")
        owners[name] = (module.get_submodule(path) if path else module, last)
    if unknown := sorted(values.keys() - owners.keys()):
        raise ValueError(f"[functional_call] the module has no parameter or buffer {unknown[0]!r}: it has "
                         f"{', '.join(sorted(owners)) or 'none'}")
    if strict and (missing := sorted(owners.keys() - values.keys())):
        raise ValueError(f"[functional_call] {missing[0]!r} has no value: give all of {', '.join(missing)}, or strict=False")
    shared: dict[int, list[str]] = {}
    for name, (owner, last) in owners.items():
        shared.setdefault(id(vars(owner).get(last)), []).append(name)
    before = []
    try:
        for name, value in values.items():
            owner, last = owners[name]
            old = vars(owner)[last]
            for same in shared[id(old)] if old is not None else [name]:
                if same == name or same not in values:
                    place, attribute = owners[same]
                    before.append((place, attribute, vars(place)[attribute]))
                    vars(place)[attribute] = value
        yield
    finally:
        for owner, last, old in reversed(before):
            vars(owner)[last] = old


def _named_tensors(module: Any) -> list[tuple[str, Tensor]]:
    """All parameters and buffers, under each of their names."""
    return [(name, tensor) for name, tensor, kept in module._all_members() if kept is not None or tensor._is_parameter]


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Returns (parameters, buffers) of several modules of one class, each stacked along a new axis 0, for vmap over
    functional_call. The stacked parameters are leaves that require a gradient where the modules' do."""
    if not models:
        raise ValueError("[stack_module_state] no module was given: give at least one")
    if any(type(each) is not type(models[0]) for each in models):
        raise ValueError("[stack_module_state] the modules have different classes: give modules of one class")

    def stacked(named: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        made = {}
        for name in named[0]:
            all_of_name = [each[name] for each in named]
            value = _plugrad.stack([x.detach() for x in all_of_name])
            wants = {x.requires_grad for x in all_of_name}
            if len(wants) > 1:
                raise ValueError(f"[stack_module_state] {name!r} requires a gradient in some modules and not in others")
            made[name] = value.requires_grad_(True) if wants.pop() else value
        return made

    return (stacked([dict(each.named_parameters()) for each in models]),
            stacked([dict(each.named_buffers()) for each in models]))
