import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def root():
    return ROOT


@pytest.fixture
def moons():
    """micrograd's demo: points, labels, parameters, and the recorded (step, loss, accuracy) of 100 steps."""
    fixtures = ROOT / "tests/fixtures"
    start = json.loads((fixtures / "moons_micrograd.json").read_text())
    return start | {"steps": json.loads((fixtures / "moons_losses.json").read_text())}


@pytest.fixture
def run_python(tmp_path):
    """Runs a program in a new interpreter with a clean environment. Returns the finished process with its output."""
    def run(code, *arguments, check=True, timeout=120, **environment):
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PLUGRAD_")}
        if "PYTHONPATH" in environment and "PYTHONPATH" in kept:
            environment["PYTHONPATH"] += os.pathsep + kept["PYTHONPATH"]
        done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True,
                              timeout=timeout,
                              cwd=tmp_path, env=kept | environment)
        if check:
            assert done.returncode == 0, f"ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done
    return run


@pytest.fixture(scope="module")
def device_under_test():
    """Makes PLUGRAD_TEST_DEVICE the default device. PLUGRAD_PLUGIN_PATH names the plugins of tests."""
    import plugrad
    before = plugrad.default_device()
    plugrad.set_default_device(os.environ.get("PLUGRAD_TEST_DEVICE", "cpu"))
    yield
    plugrad.set_default_device(before)


class NpuPlugin:
    """Builds examples/plugin with a compiler and the files of the wheel only."""

    def __init__(self, folder):
        self.source = ROOT / "examples/plugin/npu.cpp"
        self.file = self.build(self.source.read_text(), "npu", folder)

    @staticmethod
    def build(source, name, folder):
        import plugrad
        sdk = Path(plugrad.__file__).parent
        text, file = folder / f"{name}.cpp", folder / f"libplugrad-backend-{name}.so"
        text.write_text(source)
        subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-O1", "-fPIC", "-shared", "-fvisibility=hidden",
                        f"-I{sdk / 'include'}",
                        str(text), f"-Wl,--version-script={sdk / 'lib/cmake/plugrad/plugin.map'}", "-Wl,-z,defs", "-o",
                        str(file)], check=True)
        return file


@pytest.fixture(scope="session")
def npu_plugin(tmp_path_factory):
    return NpuPlugin(tmp_path_factory.mktemp("npu"))
