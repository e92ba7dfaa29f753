#!/usr/bin/env python3
"""Compares small ops in Python with PyTorch, NumPy and micrograd in one run: alternating rounds, medians, and the spread.

    bench/python/small_ops.py [--peers build-peers/venv] [--rounds 9] [--out bench/results/NAME.md]

plugrad runs in this interpreter; PyTorch, NumPy and micrograd run in the interpreter of --peers (bench/install_peers.sh).
Each library has its own process, which measures row by row. A library that is not installed there is left out.
"""
import argparse
import json
import os
import sys
from pathlib import Path

import turns

HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parents[1] / "tests/fixtures"


# --- The rows: functions by name. Each library does the same work under the same name.

def plugrad_rows():
    import plugrad
    from plugrad import Tensor
    import random
    numbers = [random.random() for _ in range(2_000_000)]
    a, b = plugrad.ones((1,)), plugrad.ones((1,))
    x, y = Tensor([1.0]), Tensor([2.0])
    big = plugrad.tensor(numbers)
    return {"add": lambda: a + b, "add a number": lambda: a + 1.5, "add, recorded": lambda: x + y,
            "mul and its backward": lambda: (x * y).backward(),
            "chain of 1000, forward + backward": chain(x, y), "relu": lambda: a.relu(), "a[0]": lambda: a[0],
            "shape": lambda: a.shape,
            "2,000,000 numbers from a list": lambda: plugrad.tensor(numbers), "2,000,000 numbers, tolist": big.tolist,
            "moons: a step with Value": moons_step(plugrad.Value, plugrad.MLP)}


def torch_rows():
    import random
    import torch
    torch.set_num_threads(1)
    numbers = [random.random() for _ in range(2_000_000)]
    a, b = torch.ones(1), torch.ones(1)
    x, y = torch.ones(1, requires_grad=True), torch.full((1,), 2.0, requires_grad=True)
    return {"add": lambda: a + b, "add a number": lambda: a + 1.5, "add, recorded": lambda: x + y,
            "mul and its backward": lambda: (x * y).backward(),
            "chain of 1000, forward + backward": chain(x, y), "relu": lambda: a.relu(), "a[0]": lambda: a[0],
            "shape": lambda: a.shape,
            "2,000,000 numbers from a list": lambda: torch.tensor(numbers),
            "2,000,000 numbers, tolist": torch.tensor(numbers).tolist}


def numpy_rows():
    import random
    import numpy
    numbers = [random.random() for _ in range(2_000_000)]
    a, b = numpy.ones(1, dtype="float32"), numpy.ones(1, dtype="float32")
    big = numpy.array(numbers, dtype="float32")
    return {"add": lambda: a + b, "add a number": lambda: a + 1.5, "a[0]": lambda: a[0], "shape": lambda: a.shape,
            "2,000,000 numbers from a list": lambda: numpy.array(numbers, dtype="float32"),
            "2,000,000 numbers, tolist": big.tolist}


def micrograd_rows():
    from micrograd.engine import Value
    from micrograd.nn import MLP
    a, b = Value(1.0), Value(2.0)
    return {"add, recorded": lambda: a + b, "moons: a step with Value": moons_step(Value, MLP)}


def chain(x, y):
    def run():
        z = x
        for _ in range(1000):
            z = z * y
        z.backward()
    return run


def moons_step(Value, MLP):
    """A step of micrograd's demo, as in its notebook."""
    start = json.loads((FIXTURES / "moons_micrograd.json").read_text())
    model = MLP(2, [16, 16, 1])
    for parameter, number in zip(model.parameters(), start["parameters"]):
        parameter.data = number

    def run():
        inputs = [list(map(Value, point)) for point in start["points"]]
        scores = list(map(model, inputs))
        losses = [(1 + -label * score).relu() for label, score in zip(start["labels"], scores)]
        loss = sum(losses) * (1.0 / len(losses)) + 1e-4 * sum(p * p for p in model.parameters())
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= 0.01 * p.grad
    return run


LIBRARIES = {"plugrad": plugrad_rows, "PyTorch": torch_rows, "NumPy": numpy_rows, "micrograd": micrograd_rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    turns.add_options(parser)
    options = parser.parse_args()
    if options.serve:
        return turns.serve(LIBRARIES[options.serve], options.serve, turns.PROCESSOR)
    peers = os.path.join(options.peers, "bin/python")
    libraries = [turns.Library(name, sys.executable if name == "plugrad" else peers, __file__) for name in LIBRARIES]
    turns.report(libraries, options, "1 thread, processor time")


if __name__ == "__main__":
    main()
