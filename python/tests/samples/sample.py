"""One row for each op: its arguments, what NumPy and PyTorch expect, and how close the result must be."""
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .case import FLOATS, Call, np


@dataclass(frozen=True)
class Sample:
    """op: the name in the package. draw: a Call from a Case.

    numpy: the expected result of the same arguments: a function, or the name of one of NumPy's. Floating operands are
    arrays of float64. torch: PyTorch's function, or its name; called where PyTorch is installed; None where it has none,
    with the reason in a comment.
    dtypes: those that the op takes; others must be refused.
    result: the dtype of the result: "same" as the last operand, or promoted; "first": as the first one; "floating": f32
    for integers and bools; "accumulated": i64 for integers and bools; "squared": i64 for bools; "listed": an argument;
    "named": the argument dtype; or a dtype.
    ulps: the error of floating results, in units of epsilon of `scale`: a function of the arguments, by default the
    result's elements, or "whole": the largest finite number among arguments and results. halves: the ulps of f16 and bf16.
    told: numpy takes the argument dtype, that of the first operand.
    gradient: whether floating operands have one. ties: why the gradients at kinks differ from PyTorch's.
    call: how to call plugrad, if not by the op's name. differs: dtypes of which PyTorch's function differs, and why.
    promotes: operands of several dtypes are converted before the op. constants: PyTorch differentiates only the operands at
    places 0, 3, 4 ... and no named ones. accepts: dtypes that the op takes, but that have no samples."""
    op: str
    draw: Callable[[Any], Any]
    numpy: Callable[..., Any] | str
    torch: Callable[..., Any] | str | None = ""
    dtypes: tuple[str, ...] = FLOATS
    result: str = "same"
    ulps: float = 4
    halves: float | None = None
    scale: Callable[..., Any] | str | None = None
    told: bool = False
    gradient: bool = True
    ties: str = ""
    call: Callable[..., Any] | None = None
    differs: tuple[str, ...] = ()
    promotes: bool = False
    constants: bool = False
    accepts: tuple[str, ...] = ()
    variant: str = ""

    @property
    def name(self):
        return f"{self.op} {self.variant}".strip()

    def expected(self, *args, **named):
        function = getattr(np, self.numpy) if isinstance(self.numpy, str) else self.numpy
        return function(*args, **named)

    def called(self, plugrad, *args, **named):
        if self.call:
            return self.call(plugrad, *args, **named)
        return getattr(plugrad, self.op)(*args, **named)

    def peer(self, torch):
        """PyTorch's function, or None."""
        if not isinstance(self.torch, str):
            return self.torch
        name = self.torch or self.op
        return getattr(torch.nn.functional, name, None) or getattr(torch, name)


def one(**how):
    """Draws a Call of one tensor of any shape."""
    return lambda case: Call(case.tensor(case.shape(), **how))
