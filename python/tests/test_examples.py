"""Runs the examples, the programs in the README, and the benchmarks."""
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest


def run(*command, **more):
    done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, timeout=300, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_moons_notebook(root, monkeypatch):
    """Runs the cells in order, as Jupyter does. The file holds the pictures, including the decision boundary."""
    pytest.importorskip("numpy", reason="NumPy is not installed")
    matplotlib = pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    matplotlib.use("Agg")
    notebook = json.loads((root / "examples/python/moons.ipynb").read_text())
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    scope = {}
    for cell in code:
        exec(cell, scope)
    assert scope["accuracy"] >= 0.95 and scope["total"].data < 0.15
    assert 0 < (scope["scores"] > 0).mean() < 1
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    printed = "".join(line for output in outputs for line in output.get("text", []))
    assert "step 99" in printed and "MLP of [" in printed


@pytest.mark.skipif(not Path("/usr/share/datasets/fashion-mnist").is_dir(),
                    reason="Debian's package dataset-fashion-mnist is not installed")
def test_fashion_mnist(root, tmp_path):
    out = run(root / "examples/python/fashion_mnist.py", "--epochs", 2, "--rows", 10000, "--out",
              tmp_path / "model.safetensors")
    assert float(re.search(r"test accuracy ([\d.]+)% on cpu", out).group(1)) > 75
    assert (tmp_path / "model.safetensors").stat().st_size > 784 * 256 * 4


def test_a_backend_in_its_own_package(root, tmp_path):
    """pip builds the package without network access. plugrad finds the plugin by its entry point."""
    pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed")
    source = tmp_path / "examples/python/plugin"
    for name in ("python/plugin/pyproject.toml", "python/plugin/CMakeLists.txt", "python/plugin/src/plugrad_npu/__init__.py",
                 "plugin/npu.cpp"):
        target = tmp_path / "examples" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text((root / "examples" / name).read_text())
    site = tmp_path / "site"
    run("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-build-isolation", "--no-deps", "--no-index",
        "--target", site, source)
    code = ("import plugrad; x = plugrad.Tensor([1.0, 2.0], device='npu'); (x * x).sum().backward(); "
            "print(x.grad.tolist(), x.device)")
    environment = {"PYTHONPATH": str(site), "PATH": "/usr/bin:/bin"}
    assert run("-c", code, env=environment) == "[2.0, 4.0] npu\n"
    refused = subprocess.run([sys.executable, "-c", code], env=environment | {"PLUGRAD_ENTRY_POINTS": "off"},
                             capture_output=True, text=True)
    assert "RuntimeError" in refused.stderr and "npu" in refused.stderr


def python_blocks(page):
    """Returns (program, output) for each ```python block that is followed by a ```text block."""
    return re.findall(r"```python\n(.*?)```\s*(?:[^`\n]*\n)*?\s*```text\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_the_lines_in_the_documents(root, page, tmp_path):
    blocks = python_blocks(root / page)
    assert blocks
    for program, printed in blocks:
        assert run("-c", program, cwd=tmp_path) == printed


def test_docstring_of_the_package():
    import doctest

    import plugrad
    result = doctest.testmod(plugrad)
    assert result.attempted >= 5 and result.failed == 0


def test_device_bench(root):
    out = run(root / "bench/device.py", "--device", "reference", "--sizes", "1,100", "--seconds", "0.01", "--rounds", 2)
    rows = [line for line in out.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + 2 * 9 + 3
    for group in ("basic", "chained", "backward", "mixed", "Value"):
        assert f"| {group} |" in out


def test_small_ops_bench(root, tmp_path):
    out = run(root / "bench/python/small_ops.py", "--peers", tmp_path, "--rounds", 1, "--out", tmp_path / "table.md")
    assert "| add |" in out and "moons" in out and (tmp_path / "table.md").read_text().strip() == out.strip()


def test_stubs_and_typing(root):
    """The package is marked as typed, and its stub names every class and function of the module."""
    import plugrad
    folder = Path(plugrad.__file__).parent
    assert (folder / "py.typed").exists()
    stub = folder / "_plugrad.pyi"
    if not stub.exists():
        pytest.skip("this is no installed wheel: the stub is made with it")
    text = stub.read_text()
    compile(text, str(stub), "exec")
    for name, value in vars(plugrad._plugrad).items():
        if not name.startswith("_"):
            assert re.search(rf"\b{name}\b", text) or isinstance(value, plugrad.DType), name
    assert "def relu(x: Tensor) -> Tensor" in text and "Device | str | None" in text
