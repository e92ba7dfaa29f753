"""One row for each op: its arguments, what NumPy and PyTorch expect, and how close the result must be."""
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .case import FLOATS, Call, np


@dataclass(frozen=True)
class Sample:
    """op: the name in the package. draw: makes a Call from a Case.

    numpy: the expected result for the same arguments: a function, or the name of a function of NumPy. Floating operands are
    arrays of float64. torch: PyTorch's function, or its name, which is the op's name by default; it is called if PyTorch is
    installed; None: no comparison with PyTorch.
    dtypes: the dtypes that the op takes; it must refuse other dtypes.
    result: the dtype of the result: "same": the dtype of the last operand, or the promoted dtype; "first": the dtype of the
    first operand; "floating": f32 for integers and bools; "accumulated": i64 for integers and bools; "squared": i64 for
    bools; "listed": a positional argument; "named": the argument dtype; or a dtype.
    ulps: the allowed error of floating results, in units of epsilon times `scale`. scale: a function of the arguments that
    is added to the size of the elements, by default 0, or "whole": the largest finite number among arguments and results.
    halves: the ulps for f16 and bf16. told: numpy takes an argument dtype, the dtype of the first operand.
    gradient: floating operands have a gradient. ties: the reason why gradients at kinks differ from PyTorch's.
    call: calls the op, if not by its name. differs: the dtypes for which PyTorch's function differs.
    promotes: the op promotes operands of several dtypes. constants: PyTorch does not differentiate the positional arguments
    1 and 2 and the named arguments. accepts: dtypes that the op takes, but that have no samples."""
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
        """Returns PyTorch's function, or None."""
        if not isinstance(self.torch, str):
            return self.torch
        name = self.torch or self.op
        return getattr(torch.nn.functional, name, None) or getattr(torch, name)


def one(**how):
    """Returns a function that draws a Call of one tensor of any shape."""
    return lambda case: Call(case.tensor(case.shape(), **how))
