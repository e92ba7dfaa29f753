"""Devices and plugins."""
import pickle
import shutil
import subprocess
import textwrap
from pathlib import Path

import plugrad
import pytest
from plugrad import Device, Tensor


def test_names():
    cpu = Device.cpu()
    assert str(cpu) == "cpu" and repr(cpu) == "Device(cpu)" and cpu.name == "cpu:0"
    assert (cpu.type, cpu.index) == ("cpu", 0)
    assert cpu == Device("cpu:0") == Device("cpu") == Device(cpu) and cpu == "cpu" and cpu != Device("reference")
    assert hash(cpu) == hash(Device("cpu:0")) and len({cpu, Device("cpu"), Device("reference")}) == 2
    assert cpu.is_cpu() and not cpu.is_cuda() and not cpu.is_gpu()
    assert not Device("reference").is_cpu()
    assert cpu.description and cpu.plugin.endswith("libplugrad-backend-cpu.so")
    assert pickle.loads(pickle.dumps(cpu)) == cpu


def test_an_unavailable_device_is_named_with_the_reason():
    with pytest.raises(RuntimeError, match="npu.*no plugin brings 'npu'.*plugins-v0"):
        Device("npu")
    with pytest.raises(RuntimeError, match="cpu:7.*brings 1"):
        Device("cpu:7")
    with pytest.raises(RuntimeError, match="npu"):
        Tensor([1], device="npu:3")


@pytest.mark.parametrize("name", ["", "CPU", "a b", ":0", "/dev/null"])
def test_what_is_no_name_is_a_value_error(name):
    with pytest.raises(ValueError, match="name of a device"):
        Device(name)


def test_cuda_is_asked_about_without_harm():
    assert Device.is_cuda_available() in (True, False)
    assert plugrad.is_gpu_available() == Device.is_gpu_available() in (True, False)


@pytest.mark.skipif(Device.is_cuda_available(), reason="a CUDA device is here")
def test_cuda_is_missing_by_name():
    for ask in (Device.cuda, lambda: Device.cuda(1), lambda: Device("cuda:1"), lambda: Tensor([1.0]).cuda(),
                lambda: Tensor([1.0]).to("cuda")):
        with pytest.raises(RuntimeError, match="CUDA"):
            ask()
    with pytest.raises(ValueError):
        Device.cuda(-1)


@pytest.mark.skipif(not Device.is_cuda_available(), reason="no CUDA device")
def test_cuda():
    device = Device.cuda()
    assert str(device) == "cuda" and device.is_cuda() and device.is_gpu() and Device.gpu() is not None
    assert Tensor([1.0]).cuda().device == device


@pytest.mark.skipif(Device.is_gpu_available(), reason="a GPU is here")
def test_no_gpu():
    with pytest.raises(RuntimeError, match="GPU"):
        Device.gpu()


def test_names_of_a_device_called_cuda(run_python, tmp_path, npu_plugin):
    """A plugin named cuda tests the names on machines without CUDA hardware."""
    source = Path(npu_plugin.source).read_text().replace('"npu", "0.1"', '"cuda", "0.1"')
    source = source.replace("imagined", "two, imagined")
    npu_plugin.build(source, "cuda", tmp_path)
    out = run_python("""
        from plugrad import Device, Tensor
        d = Device.cuda()
        print(str(d), repr(d), d.is_cuda(), d.is_cpu(), Device.is_cuda_available(), Tensor([1.0]).cuda().device)
        try: Device.cuda(1)
        except RuntimeError as error: print(error)
        """.replace("\n        ", "\n"), PLUGRAD_PLUGIN_PATH=str(tmp_path)).stdout
    assert out.startswith("cuda Device(cuda) True False True cuda\n") and "CUDA (cuda:1) is not available" in out


def test_plugins_are_listed():
    records = {record.name: record for record in plugrad.backends()}
    assert records["cpu"].is_ready and records["cpu"].devices == 1 and records["cpu"].stage == "ready"
    assert {"cpu:0", "reference:0"} <= set(plugrad.devices())
    assert any(Path(d).name == "plugins-v0" for d in plugrad.plugin_directories())
    assert Path(records["cpu"].path).parent.parts[-3:] == ("lib", "plugrad", "plugins-v0")


def test_a_file_that_crashes_goes_into_quarantine_and_out_again(run_python, tmp_path):
    source = tmp_path / "crash.c"
    source.write_text("#include <stdlib.h>\n__attribute__((constructor)) static void crash(void) { abort(); }\n")
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("there is no C compiler")
    file = tmp_path / "libplugrad-backend-crash.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", file, source], check=True)
    out = run_python("""
import plugrad
(record,) = [r for r in plugrad.backends() if 'crash' in r.path]
print(record.is_ready, 'SIGABRT' in record.reason, plugrad.full((2,), 3.0).sum().item())
print(plugrad.quarantined_plugins())
print(plugrad.clear_quarantine(record.path), plugrad.clear_quarantine(), plugrad.quarantined_plugins())""",
                     PLUGRAD_PLUGIN_PATH=str(tmp_path), XDG_CACHE_HOME=str(tmp_path / "cache")).stdout.splitlines()
    assert out[0] == "False True 6.0"
    assert str(file) in out[1] and "in its" not in out[1] and "while its file was loaded" in out[1]
    assert out[2] == "1 0 []"


def test_a_refused_file_says_why(run_python, tmp_path):
    (tmp_path / "libplugrad-backend-broken.so").write_bytes(b"no ELF at all")
    out = run_python("""
import plugrad
(record,) = [r for r in plugrad.backends() if 'broken' in r.path]
print(record.is_ready, record.reason)""", PLUGRAD_PLUGIN_PATH=str(tmp_path)).stdout
    assert out.startswith("False ") and len(out.split()) > 2


def test_load_plugin(npu_plugin, tmp_path, run_python):
    file = npu_plugin.build(Path(npu_plugin.source).read_text(), "npu", tmp_path)
    out = run_python("""
import sys, plugrad
record = plugrad.load_plugin(sys.argv[1])
x = plugrad.Tensor([[1.0, 2.0], [3.0, 4.0]], device="npu")
y = (x @ x).sum(); y.backward()
print(record.name, record.devices, y.item(), x.grad.tolist(), x.device)""", file).stdout
    assert out.split() == "npu 1 54.0 [[7.0, 11.0], [9.0, 13.0]] npu".split()
    with pytest.raises(ValueError, match="nowhere"):
        plugrad.load_plugin(tmp_path / "nowhere.so")


def test_disabled_plugins(run_python):
    out = run_python("""
import plugrad
print(plugrad.devices())
try: plugrad.Tensor([1])
except RuntimeError as error: print(error)""", PLUGRAD_DISABLE="cpu").stdout
    assert "['reference:0']" in out


def test_default_device(run_python):
    run_python("""
import plugrad
plugrad.set_default_device("reference")
assert plugrad.Tensor([1]).device == "reference" and plugrad.zeros((2,)).device == plugrad.default_device()
assert plugrad.Value(1).device == "reference" """)


def test_memory_statistics():
    device = Device.cpu()
    device.reset_peak()
    before = plugrad.memory_stats()
    x = plugrad.zeros((1 << 20,))
    after = plugrad.memory_stats("cpu")
    assert after.active - before.active == 4 << 20 and after.peak >= after.active and after.reserved >= after.active
    assert after.reserved == after.active + after.cached and after.segments >= 1 and after.largest_free <= after.cached
    del x
    assert plugrad.memory_stats().active == before.active
    assert device.trim() >= 0
    assert "active=" in repr(after) and "largest_free=" in repr(after)


def test_counters():
    before = Device.cpu().counters().kernels
    plugrad.ones((2,)) + 1
    assert Device.cpu().counters().kernels == before + 2


def test_options_are_checked(run_python):
    done = run_python("""
import plugrad
plugrad.set_device_options("cpu", {"threads": 1})
plugrad.Tensor([1])
plugrad.set_device_options("reference", {"nonsense": 1})
try: plugrad.Tensor([1], device="reference")
except ValueError as error: print(error)""")
    assert "nonsense" in done.stdout


def package(folder, entry):
    """Makes a package on the path that announces plugins."""
    info = folder / "plugrad_extra-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugrad-extra\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(f"[plugrad.plugins]\nextra = plugrad_extra:{entry}\n")
    (folder / "plugrad_extra.py").write_text(textwrap.dedent("""
        from pathlib import Path
        import plugrad  # as such a package may
        def plugins(): return Path(__file__).parent / "plugins"
        def broken(): raise OSError("gone")
    """))
    return folder


def test_entry_points_bring_plugins(npu_plugin, tmp_path, run_python):
    folder = package(tmp_path / "site", "plugins")
    (folder / "plugins").mkdir()
    shutil.copy(npu_plugin.file, folder / "plugins")
    code = "import plugrad; print(plugrad.devices())"
    assert "npu:0" in run_python(code, PYTHONPATH=str(folder)).stdout
    assert "npu:0" not in run_python(code, PYTHONPATH=str(folder), PLUGRAD_ENTRY_POINTS="off").stdout


def test_a_broken_entry_point_is_a_warning(tmp_path, run_python):
    folder = package(tmp_path / "site", "broken")
    done = run_python("import plugrad; print(plugrad.Tensor([1.0]) + 1)", PYTHONPATH=str(folder))
    assert "plugrad_extra:broken" in done.stderr and "gone" in done.stderr
