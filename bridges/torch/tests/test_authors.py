"""A plugin that `plugrad new-plugin` writes trains a transformer of PyTorch with no further line."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = os.environ.get("PLUGRAD_TOOL")  # the program plugrad, of a tree with the SDK
SDK = os.environ.get("PLUGRAD_SDK")    # the prefix with the SDK


def run(*command, **variables):
    ran = subprocess.run([str(each) for each in command], capture_output=True, text=True,
                         env={**os.environ, "PLUGRAD_FALLBACK": "error", **variables})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def build(project, language):
    """Builds a project and returns the plugin's file."""
    if language == "rust":
        if not (shutil.which("cargo") and shutil.which("pkg-config")):
            pytest.skip("cargo or pkg-config is not installed")
        run("cargo", "build", "--release", "--offline", "--manifest-path", project / "Cargo.toml",
            PKG_CONFIG_PATH=f"{SDK}/lib/pkgconfig")
        plugin = project / "libplugrad-backend-npu.so"
        shutil.copy(project / "target/release/libplugrad_backend_npu.so", plugin)
        return plugin
    said = run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={SDK}", f"-DPYTHON3={sys.executable}")
    assert "left out: the test 'trains_in_pytorch'" not in said
    run("cmake", "--build", project / "build")
    return project / "build/libplugrad-backend-npu.so"


@pytest.mark.skipif(not TOOL or not SDK, reason="PLUGRAD_TOOL and PLUGRAD_SDK name no program plugrad and no SDK")
@pytest.mark.parametrize("memory", ["host", "device"])
@pytest.mark.parametrize("language", ["c++", "c", "rust"])
def test_a_new_plugin_trains_in_pytorch(language, memory, tmp_path):
    project = tmp_path / "npu"
    run(TOOL, "new-plugin", "npu", "--lang", language, "--memory", memory, "--directory", project)
    plugin = build(project, language)
    environment = {key: "" for key in ("PLUGRAD_TORCH_DEVICES", "PLUGRAD_PLUGIN_PATH")}
    said = run(sys.executable, project / "torch_test.py", plugin, **environment)
    assert "PyTorch's CPU differs by" in said, said
    if language != "rust":
        run("ctest", "--test-dir", project / "build", "--output-on-failure", "-R", "trains_in_pytorch", **environment)


def test_a_plugin_that_does_not_load_is_named(tmp_path):
    file = Path(tmp_path / "libplugrad-backend-npu.so")
    file.write_text("not a plugin")
    program = f"import plugrad_torch; plugrad_torch.load_plugin({str(file)!r})"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode != 0 and str(file) in ran.stderr
