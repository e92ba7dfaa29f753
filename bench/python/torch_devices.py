#!/usr/bin/env python3
"""Compares PyTorch on plugrad's device `cpu` with PyTorch on its own CPU and with Inductor, in one run, in turns.

    scripts/torch.sh     # makes build/torch-2.15.0
    build/torch-2.15.0/bin/python bench/python/torch_devices.py [--only REGEX] [--rounds 9] [--out FILE]

Each row is an unchanged program of PyTorch: a training step with a fused optimiser, whose loss is read, or one op on one
element. The step is plugrad_torch.step's; torch.compile compiles the loss with its gradient, as users write it, by plugrad
or by Inductor. Times are the processor's, of one thread.
"""
import argparse
import functools
import os
import runpy
import sys
import types
from pathlib import Path

import turns

ROOT = Path(__file__).resolve().parents[2]
# The ratios are a column's times over the first column's times.
NAMES = ("plugrad-torch, eager", "plugrad-torch, torch.compile", "plugrad-torch, step", "PyTorch", "torch.compile")


def networks():
    """Returns rows: name -> (model, (batch, classes), optimiser); and the function of the loss."""
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
        "CNN of examples/cnn, batch 128, AdamW": (example_cnn, images(128, 1, 28, 28), adamw),
        "GPT, 4 x 128, 12 x 64, AdamW": (lambda: models.GPT(length=64, width=128, layers=4), tokens(12, 64), adamw),
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

    def lazy(parts):  # made when it is first measured
        made = functools.cache(lambda: row(*parts))
        return lambda: made()()
    return {name: lazy(parts) for name, parts in rows.items()}


def one_element_rows(device):
    import torch
    x, m = torch.ones(1, device=device), torch.ones(1, 1, device=device)
    return {"add, one element": lambda: x + x, "mul by a number, one element": lambda: x * 2.0,
            "add_, one element": lambda: x.add_(x), "exp, one element": lambda: torch.exp(x),
            "sum, one element": lambda: x.sum(), "mm, one element": lambda: torch.mm(m, m)}


def rows_of(name):
    import torch
    torch.set_num_threads(1)
    device = torch.device("cpu")
    compile_loss = record = lambda f: f
    if name.startswith("plugrad-torch"):
        import plugrad_torch
        device = plugrad_torch.device("cpu:0")
    if name == "plugrad-torch, step":
        record = plugrad_torch.step
    elif name == "plugrad-torch, torch.compile":
        compile_loss = functools.partial(torch.compile, backend="plugrad")
    elif name == "torch.compile":
        compile_loss = torch.compile
    rows = training_rows(device, compile_loss, record)
    return {**rows, **one_element_rows(device)} if name in ("plugrad-torch, eager", "PyTorch") else rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX")
    turns.add_options(parser)
    options = parser.parse_args()
    if options.serve:
        return turns.serve(lambda: rows_of(options.serve), options.serve, turns.PROCESSOR)
    os.environ.setdefault("PLUGRAD_PROBE", "off")
    libraries = [turns.Library(name, sys.executable, __file__) for name in NAMES]
    turns.report(libraries, options, "1 thread, processor time", options.only)


if __name__ == "__main__":
    main()
