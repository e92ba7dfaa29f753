"""A table of a model's modules: shapes, parameters, operations and bytes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any

from . import _plugrad, profiler
from ._plugrad import ProfileEvent, Tensor
from ._html_table import table
from ._modes import no_grad
from .nn.module import Module

_MOVES = {"copy", "fill", "cast", "iota", "gather", "where"}  # memory, without arithmetic


@dataclass(frozen=True)
class SummaryRow:
    """A module. flops and bytes are those of all its calls, inner modules included; parameters are elements, inner modules
    included."""

    name: str  # the path: "encoder.0"; "" for the model
    kind: str
    depth: int
    shapes: list[tuple[int, ...]] = field(default_factory=list)  # of the tensors that the first call returned
    calls: int = 0
    parameters: int = 0
    flops: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Summary:
    """The result of summary(). str() gives a table; notebooks show it."""

    rows: list[SummaryRow]
    parameters: int
    trainable: int
    parameter_bytes: int
    flops: int
    bytes: int

    def _cells(self) -> list[tuple[str, ...]]:
        head = ("module", "output", "parameters", "FLOPs", "bytes")
        lines = [("  " * row.depth + (f"({row.name.rsplit('.', 1)[-1]}): " if row.name else "") + row.kind
                  + (f" x {row.calls}" if row.calls > 1 else ""), _shapes_text(row.shapes), f"{row.parameters:,}",
                  f"{row.flops:,}", f"{row.bytes:,}") for row in self.rows]
        return [head, *lines]

    def _totals(self) -> str:
        return (f"{self.parameters:,} parameters ({self.parameter_bytes:,} bytes), {self.trainable:,} trainable; "
                f"{self.flops:,} FLOPs, {self.bytes:,} bytes read and written")

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
        lines = ["  ".join(text.ljust(width) if i < 2 else text.rjust(width)
                           for i, (text, width) in enumerate(zip(line, widths))).rstrip() for line in cells]
        return "\n".join([*lines, self._totals()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return table(self._cells(), 2, self._totals())


def _shapes_text(shapes: list[tuple[int, ...]]) -> str:
    return ", ".join(str(tuple(shape)) for shape in shapes)


def _flops(event: ProfileEvent) -> int:
    """The operations of an op: two for each product that is added in a contraction, else one for each element of the largest
    operand. Memory moves have none."""
    shapes: list[tuple[int, ...]] = [operand.shape for operand in event.operands]
    out, inputs = shapes[0], shapes[sum(operand.output for operand in event.operands):]
    if event.name in _MOVES:
        return 0
    if event.name in ("matmul", "matmul_add", "integer_matmul", "quantized_matmul"):
        return 2 * prod(out) * inputs[0][-1]
    if event.name in ("convolution", "convolution_bias"):
        return 2 * prod(out) * prod(inputs[1][1:])
    if event.name == "convolution_input_grad":
        return 2 * prod(inputs[0]) * prod(inputs[1][1:])
    if event.name == "attention":
        query, key, value = inputs[:3]
        return 2 * prod(query[:-1]) * key[-2] * (query[-1] + value[-1])
    return max((prod(shape) for shape in shapes), default=0)


def _tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors_in(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors_in(each)


@contextmanager
def _watched_calls(calls: list[tuple[Module, list[tuple[int, ...]]]]) -> Iterator[None]:
    """Makes each call of a module a range, whose name is its place in calls."""
    original = Module.__call__

    def called(self: Module, *arguments: Any, **named: Any) -> Any:
        shapes: list[tuple[int, ...]] = []
        calls.append((self, shapes))
        with profiler.range(f"summary {len(calls) - 1}"):
            result = original(self, *arguments, **named)
        shapes.extend(tuple(each.shape) for each in _tensors_in(result))
        return result

    setattr(Module, "__call__", called)
    try:
        yield
    finally:
        setattr(Module, "__call__", original)


@contextmanager
def _evaluating(model: Module) -> Iterator[None]:
    """Sets all modules to evaluation, and back to their own modes."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _inputs(model: Module, inputs: tuple[Any, ...]) -> list[Any]:
    """The inputs, with a tensor of normal numbers for a shape, in the dtype and on the device of the parameters."""
    like = next((each for each in model.parameters() if each.dtype.is_floating_point), None)
    dtype, device = ("f32", None) if like is None else (like.dtype, like.device)
    return [_plugrad.randn(each, dtype=dtype, device=device)
            if isinstance(each, tuple) and each and all(isinstance(extent, int) for extent in each) else each
            for each in inputs]


def _costs(events: list[ProfileEvent], calls: int) -> list[tuple[int, int]]:
    """The operations and bytes of each call, those of inner calls included."""
    spans: list[tuple[int, int]] = [(0, 0)] * calls
    for event in events:
        if event.kind == "range" and event.name.startswith("summary "):
            spans[int(event.name.split()[1])] = event.begin, event.begin + event.duration
    ops = [event for event in events if event.kind == "op"]
    found = []
    for begin, end in spans:
        inner = [event for event in ops if begin <= event.begin <= end]
        found.append((sum(map(_flops, inner)), sum(event.bytes for event in inner)))
    return found


def summary(model: Module, *inputs: Any, depth: int | None = None, **named: Any) -> Summary:
    """Runs the model once, in evaluation and without gradients, and returns its modules with the shapes of their results,
    their parameters, and the operations and bytes of the ops that ran.

    inputs: the arguments of the model; a tuple of whole numbers is a shape, for which a tensor of random numbers is made.
    depth: how many levels of inner modules to show. FLOPs are exact for products, convolutions and attention, a
    multiplication and an addition each; other ops count one for each element. Bytes are those of all operands.

    >>> from plugrad import nn, summary
    >>> print(summary(nn.Linear(4, 2), (8, 4)))
    module  output  parameters  FLOPs  bytes
    Linear  (8, 2)          10    128    232
    10 parameters (40 bytes), 10 trainable; 128 FLOPs, 232 bytes read and written
    """
    calls: list[tuple[Module, list[tuple[int, ...]]]] = []
    arguments = _inputs(model, inputs)
    with _evaluating(model), no_grad(), profiler.profile() as recorded, _watched_calls(calls):
        model(*arguments, **named)
    costs = _costs(recorded.events(), len(calls))
    rows = []
    for name, module in model.named_modules():
        level = name.count(".") + 1 if name else 0
        if depth is not None and level > depth:
            continue
        own = [i for i, (each, _) in enumerate(calls) if each is module]
        rows.append(SummaryRow(name, type(module).__name__, level, calls[own[0]][1] if own else [], len(own),
                               sum(each.numel() for each in module.parameters()), sum(costs[i][0] for i in own),
                               sum(costs[i][1] for i in own)))
    parameters = list(model.parameters())
    return Summary(rows, sum(each.numel() for each in parameters),
                   sum(each.numel() for each in parameters if each.requires_grad),
                   sum(each.numel() * each.dtype.itemsize for each in parameters), rows[0].flops, rows[0].bytes)
