#!/usr/bin/env python3
"""Compares PyTorch on plugrad's device `cpu` with PyTorch on its own CPU and with Inductor, in one run, in turns.

    scripts/torch.sh     # makes build/torch-2.15.0
    build/torch-2.15.0/bin/python bench/python/torch_devices.py [--only REGEX] [--rounds 9] [--out FILE]

Each row is an unchanged program of PyTorch: a training step with a fused optimiser, whose loss is read, or one op on one
element. A recorded step is plugrad_torch.step; torch.compile compiles the loss with its gradient, as users write it. Times
are the processor's, of one thread.
"""
import argparse
import os
import runpy
import sys
import types
from pathlib import Path

import turns

ROOT = Path(__file__).resolve().parents[2]
# Ours first: the ratios are the other columns' times over its times.
NAMES = ("recorded step", "torch.compile, plugrad", "eager, plugrad", "eager, PyTorch", "torch.compile, Inductor")


def networks():
    """Returns rows: name -> (model, batch, classes, optimiser)."""
    import torch
    from torch import nn
    models = types.SimpleNamespace(**runpy.run_path(str(ROOT / "bridges/torch/tests/models.py")))
    torch.manual_seed(1)

    def sgd(parameters):
        return torch.optim.SGD(parameters, lr=0.01, momentum=0.9, fused=True)

    def adamw(parameters):
        return torch.optim.AdamW(parameters, lr=1e-3, fused=True)

    def mlp():
        return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 10))

    def example_cnn():
        return nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.MaxPool2d(2), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1), nn.MaxPool2d(2), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Flatten(), nn.Dropout(0.1), nn.Linear(32 * 7 * 7, 10))

    def tokens(n, length):
        return torch.randint(1, 65, (n, length)), torch.randint(65, (n, length))

    def images(n, *shape):
        return torch.randn(n, *shape), torch.randint(10, (n,))
    return {
        "MLP 64-128-128-10, batch 8": (mlp, images(8, 64), sgd),
        "CNN, 16 x 16, batch 8": (models.cnn, images(8, 1, 16, 16), sgd),
        "ResNet-18, 16 wide, 32 x 32, batch 8": (lambda: models.resnet18(16), images(8, 3, 32, 32), sgd),
        "GPT, 2 x 64, 8 x 32": (lambda: models.GPT(length=32, width=64), tokens(8, 32), sgd),
        "BERT, 2 x 64, 8 x 32": (lambda: models.BERT(length=32, width=64), tokens(8, 32), sgd),
        "LSTM, 2 x 24, 8 x 16": (models.LSTM, tokens(8, 16), sgd),
        "CNN of the example, batch 128, AdamW": (example_cnn, images(128, 1, 28, 28), adamw),
        "GPT of the example, 4 x 128, 12 x 64, AdamW":
            (lambda: models.GPT(length=64, width=128, layers=4), tokens(12, 64), adamw),
    }, models.loss_of


def training_rows(device, compile_loss, record):
    rows, loss_of = networks()

    def row(make, data, optimizer_of):
        net = make().to(device)
        x, y = (tensor.to(device) for tensor in data)
        optimizer, loss = optimizer_of(net.parameters()), compile_loss(loss_of)

        def step(x, y):
            optimizer.zero_grad()
            value = loss(net, x, y)
            value.backward()
            optimizer.step()
            return value
        step = record(step)
        for _ in range(4):  # compiles, and records
            step(x, y).item()
        return lambda: step(x, y).item()
    return {name: Lazy(lambda parts=parts: row(*parts)) for name, parts in rows.items()}


class Lazy:
    """A row that is made when it is first measured."""

    def __init__(self, make):
        self.make, self.run = make, None

    def __call__(self):
        if self.run is None:
            self.run = self.make()
        return self.run()


def one_element_rows(device):
    import torch
    x, m = torch.ones(1, device=device), torch.ones(1, 1, device=device)
    return {"add, one element": lambda: x + x, "mul by a number, one element": lambda: x * 2.0,
            "add_, one element": lambda: x.add_(x), "exp, one element": lambda: torch.exp(x),
            "sum, one element": lambda: x.sum(), "mm, one element": lambda: torch.mm(m, m)}


def is_ours(name):
    return not name.endswith(("PyTorch", "Inductor"))


def rows_of(name):
    import torch
    torch.set_num_threads(1)
    device = torch.device("cpu")
    if is_ours(name):
        import plugrad_torch
        device = plugrad_torch.device("cpu:0")
    compiling = {"torch.compile, plugrad": lambda f: torch.compile(f, backend="plugrad"),
                 "torch.compile, Inductor": torch.compile}.get(name, lambda f: f)
    rows = training_rows(device, compiling, plugrad_torch.step if name == NAMES[0] else lambda f: f)
    return {**rows, **(one_element_rows(device) if name.startswith("eager") else {})}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX")
    turns.add_options(parser)
    options = parser.parse_args()
    if options.serve:
        package = "plugrad-torch" if is_ours(options.serve) else "torch"
        return turns.serve(lambda: rows_of(options.serve), options.serve, turns.PROCESSOR, package)
    os.environ.setdefault("PLUGRAD_PROBE", "off")
    libraries = [turns.Library(name, sys.executable, __file__) for name in NAMES]
    turns.report(libraries, options, "1 thread, processor time", options.only)


if __name__ == "__main__":
    main()
