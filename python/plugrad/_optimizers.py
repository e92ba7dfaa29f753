"""Optimisers derived from Optimizer by programs, with PyTorch's protocol: param_groups are dicts, state is a dict with the
data of step for each parameter."""

import copy
from collections import defaultdict
from typing import Any

from . import _plugrad
from ._plugrad import Tensor


def begin(optimizer: Any, params: Any, defaults: dict[str, Any]) -> None:
    """The body of Optimizer.__init__: makes the groups of params, with defaults for a group's missing options."""
    optimizer.defaults, optimizer.state = dict(defaults), defaultdict(dict)
    optimizer._groups, optimizer._parameters = [], []
    given = [params] if isinstance(params, (Tensor, dict)) else list(params)
    if isinstance(params, Tensor) or not given:
        raise ValueError("[optimizer] params is " + ("a tensor" if given else "empty")
                         + ": expected an iterable of tensors, or of dicts with \"params\" and options")
    groups = given if isinstance(given[0], dict) else [{"params": given}]
    if not all(isinstance(group, dict) for group in groups):
        raise TypeError("[optimizer] tensors and groups cannot be mixed")
    for group in groups:
        optimizer.add_param_group(group)


def add_param_group(optimizer: Any, group: dict[str, Any]) -> None:
    if "params" not in group:
        raise ValueError("[optimizer] a group has no \"params\"")
    params = group["params"]
    tensors = [params] if isinstance(params, Tensor) else list(params)
    optimizer._register(tensors)
    optimizer._groups.append({"params": tensors, **optimizer.defaults, **{k: v for k, v in group.items() if k != "params"}})
    optimizer._parameters.append(tensors)


def state_dict(optimizer: Any) -> dict[str, Any]:
    """{"state": {0: {..}}, "param_groups": [{.., "params": [0]}]}: parameters by their numbers."""
    numbers = {id(each): i for i, each in enumerate(_all(optimizer))}
    for each in optimizer.state:
        if id(each) not in numbers:
            raise ValueError(f"[optimizer] state has the key {each!r:.80}, which is not a parameter of a group")
    groups = [{**group, "params": [numbers[id(each)] for each in group["params"]]} for group in optimizer._groups]
    return {"state": {numbers[id(each)]: dict(kept) for each, kept in optimizer.state.items()}, "param_groups": groups}


def load_state_dict(optimizer: Any, state: dict[str, Any]) -> None:
    if missing := [name for name in ("state", "param_groups") if name not in state]:
        raise ValueError(f"[optimizer] the state has no '{missing[0]}': expected what state_dict returned")
    groups = state["param_groups"]
    if [len(each["params"]) for each in groups] != [len(each["params"]) for each in optimizer._groups]:
        raise ValueError(f"[optimizer] the state has groups of {[len(each['params']) for each in groups]} parameters, the "
                         f"optimizer has groups of {[len(each['params']) for each in optimizer._groups]}")
    numbers = [number for each in groups for number in each["params"]]
    if strange := [number for number in state["state"] if number not in numbers]:
        raise ValueError(f"[optimizer] the state is of parameter {strange[0]!r}, which is in none of its groups")
    kept: Any = defaultdict(dict)
    for number, parameter in zip(numbers, _all(optimizer), strict=True):
        if number in state["state"]:
            kept[parameter] = {name: _placed(value, parameter) for name, value in state["state"][number].items()}
    optimizer.state = kept
    for group, given in zip(optimizer._groups, groups, strict=True):
        group.update({name: copy.deepcopy(value) for name, value in given.items() if name != "params"})


def pickled(optimizer: Any) -> tuple[Any, ...]:
    rest = {name: value for name, value in vars(optimizer).items() if name not in ("_groups", "_parameters", "state")}
    return _restored, (type(optimizer), optimizer._groups, dict(optimizer.state), rest)


def text(optimizer: Any) -> str:
    """The options of all groups, as PyTorch prints them."""
    lines = [f"{type(optimizer).__name__} ("]
    for i, group in enumerate(optimizer.param_groups):
        options = [f"    {name}: {group[name]}" for name in sorted(group.keys()) if name != "params"]
        lines += [f"Parameter Group {i}", *options, ""]
    return "\n".join([*lines[:-1], ")"])


def _all(optimizer: Any) -> list[Tensor]:
    return [each for group in optimizer._groups for each in group["params"]]


def _placed(value: Any, parameter: Tensor) -> Any:
    """Returns a copy of a parameter's kept value, on the parameter's device."""
    return value.to(parameter.device, copy=True) if isinstance(value, Tensor) else copy.deepcopy(value)


def _restored(kind: Any, groups: list[dict[str, Any]], state: dict[Tensor, Any], rest: dict[str, Any]) -> Any:
    made = kind.__new__(kind)
    _plugrad.Optimizer.__init__(made, groups, rest["defaults"])
    vars(made).update(rest)
    made.state.update(state)
    return made
