#!/usr/bin/env python3
"""Compares small ops in Python with PyTorch, NumPy and micrograd in one run: rounds in turns, medians, and the spread.

    bench/python/small_ops.py [--peers build-peers/venv] [--rounds 9] [--out bench/results/NAME.md]

plugrad runs in this interpreter; PyTorch, NumPy and micrograd run in that of --peers (bench/install_peers.sh). Each library
has a process of its own, which measures row by row. A library that is not installed there is left out.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parents[1] / "tests/fixtures"


# --- The rows: each library does the same work under one name. A row returns (function, calls of it in one, or None).

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


# --- Measuring.

def seconds(run, budget=0.05):
    """Seconds per call, in a loop that fills the budget. Subtracts the time of the loop itself."""
    calls = 1
    while True:
        taken = timed(run, calls)
        if taken >= budget / 4 or calls > 10**7:
            break
        calls *= 4
    calls = max(1, int(calls * budget / max(taken, 1e-9)))
    taken = timed(run, calls)
    return max(taken - timed(lambda: None, calls), 1e-12) / calls if calls > 100 else taken / calls


def timed(run, calls):
    """Reads the processor's clock, which stops while other processes run. Each library has one thread."""
    start = time.process_time()
    for _ in range(calls):
        run()
    return time.process_time() - start


class Library:
    """One library, in its own interpreter."""

    def __init__(self, name, python):
        self.name, self.rows = name, []
        if not Path(python).exists():
            return
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PLUGRAD_CPU_OPTIONS": "threads=1"}
        self.child = subprocess.Popen([python, __file__, "--serve", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True, env=environment)
        first = self.child.stdout.readline()
        self.version, self.rows = json.loads(first) if first else ("", [])

    def measure(self, row):
        self.child.stdin.write(row + "\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())


def serve(name):
    from importlib import metadata
    try:
        rows = LIBRARIES[name]()
    except ImportError:
        return
    version = metadata.version({"PyTorch": "torch"}.get(name, name.lower()))
    print(json.dumps([f"{name} {version}", list(rows)]), flush=True)
    for line in sys.stdin:
        print(json.dumps(seconds(rows[line.strip()])), flush=True)


def text_of(times):
    middle = statistics.median(times)
    unit, factor = ("ns", 1e9) if middle < 1e-5 else ("us", 1e6) if middle < 1e-2 else ("ms", 1e3)
    return f"{middle * factor:.3g} {unit} ({min(times) * factor:.3g} to {max(times) * factor:.3g})"


def table(libraries, rounds):
    ours, others = libraries[0], [each for each in libraries[1:] if each.rows]
    titles = [ours.version, *(f"{each.version} | times faster" for each in others)]
    yield "| row | " + " | ".join(titles) + " |"
    yield "|---" * (2 + 2 * len(others)) + "|"
    for row in ours.rows:
        times = {each.name: [] for each in [ours, *others] if row in each.rows}
        for _ in range(rounds):
            for each in [ours, *others]:
                if row in each.rows:
                    times[each.name].append(each.measure(row))
        cells = [text_of(times[ours.name])]
        for each in others:
            known = times.get(each.name)
            ratio = f"{statistics.median(known) / statistics.median(times[ours.name]):.1f}" if known else ""
            cells += [text_of(known) if known else "", ratio]
        yield f"| {row} | " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default="build-peers/venv")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve)
    peers = os.path.join(options.peers, "bin/python")
    libraries = [Library("plugrad", sys.executable), Library("PyTorch", peers), Library("NumPy", peers),
                 Library("micrograd", peers)]
    processor = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
                     platform.machine())
    lines = [f"{processor}, Python {platform.python_version()}, one thread, processor time, "
             f"load {os.getloadavg()[0]:.1f} at the start; medians of {options.rounds} rounds in turns (least to most)", ""]
    lines += table(libraries, options.rounds)
    print("\n".join(lines))
    if options.out:
        Path(options.out).parent.mkdir(parents=True, exist_ok=True)
        Path(options.out).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
