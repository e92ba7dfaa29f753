"""Unchanged models of PyTorch train on every device with the losses of PyTorch's CPU."""
import subprocess
import sys
from pathlib import Path

import models
import plugrad_torch
import pytest
import torch

CPU = {}


def on_cpu(name, optimizer, dtype=torch.float32):
    key = (name, optimizer, dtype)
    if key not in CPU:
        CPU[key] = models.train(name, optimizer, "cpu", dtype=dtype)
    return CPU[key]


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("name", ["mlp", "cnn", "gpt", "bert", "lstm", "gru"])
def test_losses_are_those_of_the_cpu(name, optimizer, device):
    losses = models.train(name, optimizer, device)
    assert models.worst(losses, on_cpu(name, optimizer)) < 2e-6
    assert plugrad_torch.fallbacks() == {}


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_a_deep_network_agrees_in_double_precision(optimizer, first):
    # In f32 its losses diverge after three steps for any change of a rounding.
    losses = models.train("resnet18", optimizer, first, dtype=torch.float64)
    assert models.worst(losses, on_cpu("resnet18", optimizer, torch.float64)) < 1e-12
    assert plugrad_torch.fallbacks() == {}


@pytest.mark.parametrize("optimizer", ["sgd fused", "adamw fused", "adamw capturable"])
@pytest.mark.parametrize("name", ["mlp", "gpt"])
def test_optimisers_on_the_device(name, optimizer, device):
    assert models.worst(models.train(name, optimizer, device), on_cpu(name, optimizer.split()[0] if "adamw" in optimizer
                                                                       else optimizer)) < 2e-6
    assert plugrad_torch.fallbacks() == {}


def test_a_plugin_of_tier_0_alone_trains_all_models():
    if "sim:0" not in plugrad_torch.devices():
        pytest.skip("the plugin sim, which can leave out ops, is not in PLUGRAD_PLUGIN_PATH")
    # Options of a device are set before its first use: in a process of its own.
    program = """
import models, plugrad_torch
plugrad_torch.set_option("sim", "without_ops", plugrad_torch.tier1_ops())
for name in ("mlp", "cnn", "gpt", "bert", "lstm"):
    losses = models.train(name, "sgd", plugrad_torch.device("sim"))
    print(name, models.worst(losses, models.train(name, "sgd", "cpu")), plugrad_torch.fallbacks())
    assert models.worst(losses, models.train(name, "sgd", "cpu")) < 2e-6 and not plugrad_torch.fallbacks(), name
assert plugrad_torch.counters("sim")["decompositions"] > 100
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=Path(__file__).parent)
    assert ran.returncode == 0, ran.stdout + ran.stderr
