"""The functions that pickles name: pickle cannot name functions of compiled modules."""

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
