"""Functions named in pickles: pickle cannot name functions of compiled modules."""

from typing import Any

from . import _plugrad


def tensor(*parts: Any) -> _plugrad.Tensor:
    return _plugrad._unpickle(*parts)


def network(kind: Any, arguments: tuple[Any, ...], device: str, numbers: list[float]) -> Any:
    """A Neuron, Layer or MLP with these parameters. The seed leaves the device's generator as it was."""
    made = kind(*arguments, device=device, seed=0)
    for parameter, number in zip(made.parameters(), numbers, strict=True):
        parameter.data = number
    return made


def optimizer(kind: Any, groups: list[dict[str, Any]], state: dict[str, _plugrad.Tensor], steps: int) -> Any:
    made = kind(groups)
    made.load_state_dict(state, steps)
    return made


# Options whose values are tuples or may be None.
_OTHER_OPTIONS = ("betas", "etas", "step_sizes", "ns_coefficients", "line_search_fn", "adjust_lr_fn")


def state_of_torch(state: dict[str, Any]) -> dict[str, _plugrad.Tensor]:
    """The state of an optimiser of PyTorch, {"state": {0: {..}}, "param_groups": [..]}, as plugrad's optimisers name it."""
    flat: dict[str, _plugrad.Tensor] = {}
    steps = 0

    def put(name: str, value: Any, dtype: str) -> None:
        flat[name] = _plugrad.Tensor(value, dtype=dtype, requires_grad=False)
    try:
        for i, slots in state["state"].items():
            for name, value in slots.items():
                if name == "step":
                    steps = max(steps, int(value))
                    put(f"step.{i}", int(value), "i64")
                elif isinstance(value, _plugrad.Tensor):
                    flat[f"{name}.{i}"] = value
                elif isinstance(value, (int, float)):
                    put(f"{name}.{i}", float(value), "f64")
                elif isinstance(value, list):
                    tensors = [each for each in value if isinstance(each, _plugrad.Tensor)]
                    flat.update({f"{name}.{i}.{k}": each for k, each in enumerate(tensors)})
        for i, group in enumerate(state["param_groups"]):
            for name, value in group.items():
                if isinstance(value, _plugrad.Tensor):
                    value = value.item()
                if isinstance(value, (int, float, str)) or name in _OTHER_OPTIONS:
                    for option, number in _plugrad._numbers_of_option(name, value).items():
                        put(f"param_groups.{i}.{option}", number, "f64")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError('[optimizer] the state is not like {"state": {0: {..}}, "param_groups": [{..}]}: '
                         f"{type(error).__name__}: {error}") from None
    put("steps", steps, "i64")
    return flat
