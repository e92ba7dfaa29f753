"""PyTorch's own samples of its operators, on a device whose memory the host cannot read."""
import collections
import os
import subprocess
import sys

import plugrad_torch
import pytest

from plugrad_torch import operators

DEVICE = "sim:0" if "sim:0" in plugrad_torch.devices() else "cpu:0"


def check(dtype, gradients, native, tmp_path):
    """Runs all entries; at least the share `native` of them must run without the CPU."""
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "plugrad_torch.operators", "--device", DEVICE, "--dtype", dtype, "--json", report]
    ran = subprocess.run([*command, *(["--gradients"] if gradients else [])], capture_output=True, text=True,
                         env={**os.environ, "PLUGRAD_FALLBACK": "allow"})
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-4000:]
    counts = collections.Counter(kind for kind, _ in operators.read_report(report).values())
    tried = sum(counts.values()) - counts["skipped"]
    assert tried > 400 and counts["error"] <= 0.01 * tried, ran.stdout[-4000:]
    assert counts["native"] + counts["composed"] >= native * tried, counts


def test_results_in_f32(tmp_path):
    check("float32", False, 0.79, tmp_path)


# Of PyTorch 2.15: the longer runs, for a change of the bridge.
@pytest.mark.parametrize("dtype, gradients, native", [("float32", True, 0.79), ("bfloat16", False, 0.95),
                                                      ("int64", False, 0.80), ("float64", False, 0.79)])
def test_results_full(dtype, gradients, native, tmp_path):
    check(dtype, gradients, native, tmp_path)


def test_an_entry_that_differs_is_wrong(monkeypatch):
    import torch
    entry = next(op for op in operators._entries("^mul$"))
    monkeypatch.setattr(operators, "_moved", lambda value, place, moved=operators._moved:
                        moved(value, place) if place == "cpu" else
                        torch.utils._pytree.tree_map(lambda x: x.to(place) * 1.01, value))
    kind, detail = operators.check(entry, torch.float32, plugrad_torch.device(DEVICE), False, 1)
    assert kind == "wrong" and "not close" in detail
