#!/usr/bin/env python3
"""Writes NAME.txt for each NAME.py in this folder that has a table ROWS: results and gradients of PyTorch's functions.

write_golden.py [NAME ...]

A row is (name, function, operands). An operand is a shape, whose elements are then spread between -2 and 2, or a tensor.
In the file each row has the lines

  row NAME
  in DTYPE SHAPE elements...     one for each operand
  out DTYPE SHAPE elements...    one for each result
  grad SHAPE elements...         one for each floating operand, of the sum of all floating results times WEIGHTS;
                                 left out where PyTorch's function has no gradient
"""
import importlib
import math
import sys
from pathlib import Path

import torch

FOLDER = Path(__file__).parent
DTYPES = {torch.float64: "f64", torch.float32: "f32", torch.int64: "i64", torch.int32: "i32", torch.bool: "bool",
          torch.uint8: "u8", torch.float16: "f16", torch.bfloat16: "bf16", torch.int8: "i8", torch.int16: "i16"}


def spread(shape, low=-2.0, high=2.0):
    """Numbers without ties, in a scrambled order."""
    count = math.prod(shape)
    step = next(s for s in range(max(int(count * 0.618), 1), 2 * count + 3) if math.gcd(s, max(count, 1)) == 1)
    values = [low + (high - low) * (i * step % count + 0.37) / count for i in range(count)]
    return torch.tensor([round(value * 1024) / 1024 for value in values], dtype=torch.float64).reshape(shape)


def f64(values, shape=None):
    made = torch.tensor(values, dtype=torch.float64)
    return made if shape is None else made.reshape(shape)


def weights(shape):
    """The weights of a sum of results; tests/torch/torch_test.cpp has the same weights."""
    return torch.tensor([0.5 + i * 5 % 7 / 8 for i in range(math.prod(shape))], dtype=torch.float64).reshape(shape)


def numbers(x):
    x = x.detach()
    values = x.reshape(-1).to(torch.float64).tolist() if x.dtype.is_floating_point else [int(v) for v in x.reshape(-1)]
    return " ".join(["(" + ",".join(map(str, x.shape)) + ")", *map(repr, values)])


def row_lines(name, function, operands):
    tensors = [each if isinstance(each, torch.Tensor) else spread(each) for each in operands]
    leaves = [x.clone().requires_grad_() if x.dtype.is_floating_point else x for x in tensors]
    results = function(*leaves)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    yield f"row {name}"
    yield from (f"in {DTYPES[x.dtype]} {numbers(x)}" for x in tensors)
    yield from (f"out {DTYPES[x.dtype]} {numbers(x)}" for x in results)
    loss = sum((x * weights(x.shape)).sum() for x in results if x.requires_grad)
    if not isinstance(loss, torch.Tensor):
        return
    floating = [x for x in leaves if x.requires_grad]
    found = torch.autograd.grad(loss, floating, allow_unused=True)
    yield from ("grad " + numbers(torch.zeros_like(x) if g is None else g) for x, g in zip(floating, found))


def main(names):
    for name in names or sorted(path.stem for path in FOLDER.glob("*_rows.py")):
        rows = importlib.import_module(name).ROWS
        if len({row[0] for row in rows}) < len(rows):
            sys.exit(f"{name}: a name appears twice")
        lines = [line for row in rows for line in row_lines(*row)]
        (FOLDER / f"{name}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
