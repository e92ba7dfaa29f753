"""Runs programs for PyTorch with only the import changed. python/tests/scripts holds the unchanged programs."""
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py"))
NAMES = [each.stem for each in SCRIPTS]


def changed(text):
    """Returns the program with plugrad in place of torch in its imports."""
    text = re.sub(r"^import torch$", "import plugrad as torch", text, flags=re.MULTILINE)
    text = re.sub(r"^import torch\.([\w.]+)", r"import plugrad.\1", text, flags=re.MULTILINE)
    return re.sub(r"^from torch\b", "from plugrad", text, flags=re.MULTILINE)


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_a_program_runs_unchanged(run_python, script):
    pytest.importorskip("numpy", reason="NumPy is not installed")
    run_python(changed(script.read_text()), timeout=300)


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_it_is_a_program_for_torch(script):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
