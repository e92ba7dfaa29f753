"""mypy and pyright accept the types of the examples, of the programs in the documents, and of the package."""
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import plugrad
import pytest


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Makes a folder with the Python programs of the examples and documents, as files."""
    root, folder = Path(__file__).resolve().parents[2], tmp_path_factory.mktemp("programs")
    for path in root.glob("examples/**/*.py"):
        (folder / f"{'_'.join(path.relative_to(root).with_suffix('').parts)}.py").write_text(path.read_text())
    for page in [root / "README.md", *root.glob("docs/*.md")]:
        for i, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)):
            (folder / f"{page.stem.lower()}_{i}.py").write_text(code)
    notebook = json.loads((root / "examples/python/moons.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    (folder / "moons.py").write_text("\n".join(cells) + "\n")
    (folder / "annotated.py").write_text((root / "python/tests/annotated.py").read_text())
    found = sorted(folder.glob("*.py"))
    assert {"moons.py", "readme_0.py", "python_0.py", "examples_python_fashion_mnist.py"} <= {path.name for path in found}
    assert not [path.name for path in found if "type: ignore" in path.read_text()]
    return found


@pytest.fixture(autouse=True)
def stub():
    if not (Path(plugrad.__file__).parent / "_plugrad.pyi").exists():
        pytest.skip("this is no installed wheel: the stub is made with it")


def checked(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_mypy_accepts_the_programs(programs):
    pytest.importorskip("mypy", reason="mypy is not installed")
    checked(sys.executable, "-m", "mypy", "--strict", "--cache-dir", programs[0].parent / "cache", *programs)


def test_mypy_accepts_the_package(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    checked(sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, "-p", "plugrad")


def test_pyright_accepts_the_programs(programs):
    program = shutil.which("pyright", path=Path(sys.executable).parent)
    if program is None or shutil.which("node") is None:
        pytest.skip("pyright or node is not installed")
    checked(program, "--pythonpath", sys.executable, *programs)


def test_the_annotated_program_runs(root):
    done = subprocess.run([sys.executable, root / "python/tests/annotated.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
