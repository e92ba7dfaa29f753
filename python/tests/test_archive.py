"""PyTorch's files: plugrad reads and writes them, and refuses files that would run code."""
import io
import os
import pickle
import subprocess
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path

import plugrad
import pytest
from plugrad import Tensor, nn, optim


def test_a_file_of_torch(root):
    """PyTorch 2.15 wrote the file; the assertions list its contents."""
    read = plugrad.load(root / "tests/fixtures/torch_checkpoint.pt", map_location="cpu", weights_only=True)
    assert (read["epoch"], read["best"], read["name"], read["shape"], read["none"]) == (3, 0.5, "run ü", (2, 3), None)
    assert read["dtype"] == "f16" and str(read["device"]) == "cpu" and read["set"] == {1, 2} and read["big"] == 2**70
    assert read["bytes"] == b"ab\xff" and read["nested"][1][1]["a"].item() == 1.5 and read["empty"].shape == (0, 2)
    assert [read[name].dtype for name in ("half", "bf16", "whole", "flags")] == ["f16", "bf16", "i64", "bool"]
    first, turned = read["tied"]
    assert first.tolist() == [[0, 1, 2], [3, 4, 5]] and turned.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert read["slice"].tolist() == [[1, 2], [4, 5]] and read["flags"].tolist() == [True, False]
    first[0, 1] = 7.0  # tensors that shared memory in PyTorch share memory here
    assert turned[1, 0].item() == read["slice"][0, 0].item() == 7
    assert read["parameter"]._is_parameter and not first.requires_grad
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    net.load_state_dict(read["model"])
    optimizer = optim.Adam(net.parameters(), lr=1.0)
    with pytest.raises(ValueError, match="groups of 4 parameters, the optimizer has groups of 5"):
        optim.Adam([*net.parameters(), nn.Parameter([1.0])]).load_state_dict(read["optimizer"])
    optimizer.load_state_dict(read["optimizer"])
    assert optimizer.lr == 0.01 and optimizer.steps == 1
    assert optimizer.state_dict()["exp_avg.3"].tolist() == pytest.approx([0.4, 0.4])


def everything():
    w = plugrad.arange(6.0).reshape(2, 3)
    return {"model": OrderedDict(a=w, b=w), "turned": w.T, "epoch": 3, "list": [1, (2.5, None, True), "text", b"ab", {1, 2}],
            "parameter": nn.Parameter([1.0, 2.0]), "frozen": nn.Parameter([1.0], requires_grad=False), "dtype": plugrad.bf16,
            "device": plugrad.device("cpu"), "empty": plugrad.zeros(0, 2), "scalar": plugrad.tensor(1.5), "shape": w.shape,
            **{name: plugrad.ones(2).to(name) for name in ("f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool")}}


def test_round_trips(tmp_path):
    saved = everything()
    buffer = io.BytesIO()
    plugrad.save(saved, tmp_path / "x.pt")
    plugrad.save(saved, buffer)
    buffer.seek(0)
    for read in (plugrad.load(tmp_path / "x.pt"), plugrad.load(buffer)):
        assert read.keys() == saved.keys() and type(read["model"]) is OrderedDict
        for name, want in saved.items():
            got = read[name]
            if isinstance(want, Tensor):
                assert (got.tolist(), got.dtype, got.shape) == (want.tolist(), want.dtype, want.shape), name
                assert (got._is_parameter, got.requires_grad) == (want._is_parameter, want.requires_grad), name
            elif name not in ("model", "device"):
                assert got == want, name
        assert read["model"]["b"].tolist() == saved["model"]["b"].tolist() and str(read["device"]) == "cpu"
    with zipfile.ZipFile(tmp_path / "x.pt") as file:  # tied weights are stored once, at an address that a reader can map
        places = [info for info in file.infolist() if "/data/" in info.filename]
        assert len(places) == len([v for v in saved.values() if isinstance(v, Tensor)]) + 1
    raw = (tmp_path / "x.pt").read_bytes()
    assert raw.index(plugrad.arange(6.0).__reduce__()[1][0]) % 64 == 0


def test_torch_reads_what_plugrad_writes(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    saved = everything()
    plugrad.save(saved, tmp_path / "x.pt")
    read = torch.load(tmp_path / "x.pt", weights_only=True)
    for name, want in saved.items():
        if isinstance(want, Tensor):
            assert read[name].tolist() == want.tolist() and list(read[name].shape) == list(want.shape), name
    assert read["dtype"] == torch.bfloat16 and read["parameter"].requires_grad and read["list"][4] == {1, 2}
    assert read["model"]["a"].data_ptr() == read["model"]["b"].data_ptr()


def test_nothing_is_lost_where_saving_fails(tmp_path):
    path = tmp_path / "x.pt"
    plugrad.save({"a": plugrad.ones(2)}, path)
    for wrong in (nn.Linear(2, 2), lambda: 0, {"a": object()}):
        with pytest.raises((TypeError, pickle.PicklingError)):
            plugrad.save(wrong, path)
    for call in (lambda: plugrad.save([1], path, metdata={}), lambda: plugrad.load(path, weight_only=True)):
        with pytest.raises(TypeError, match="unexpected keyword"):
            call()
    with pytest.raises(ValueError, match="NUL|0"):
        plugrad.save([1], "a\0b.pt")
    assert plugrad.load(path)["a"].tolist() == [1, 1] and os.listdir(tmp_path) == ["x.pt"]


class Attack:
    def __init__(self, function, *arguments):
        self._call = function, arguments

    def __reduce__(self):
        return self._call


def archive(path, text, **entries):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", text)
        for name, data in entries.items():
            file.writestr(f"archive/{name.replace('__', '/')}", data)


@pytest.mark.parametrize("attack, named", [
    (Attack(os.system, "touch ran"), "system"), (Attack(eval, "open('ran', 'w')"), "eval"),
    (Attack(getattr, "a", "upper"), "getattr"), (Attack(exec, "1"), "exec"), (Attack(io.open, "ran", "w"), "open"),
    (nn.Linear(1, 1), "Linear|copyreg|copy_reg")], ids=["system", "eval", "getattr", "exec", "open", "module"])
def test_no_file_runs_code(tmp_path, monkeypatch, attack, named):
    monkeypatch.chdir(tmp_path)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        archive("x.pt", pickle.dumps({"a": attack}, protocol))
        with pytest.raises(OSError, match=named):
            plugrad.load("x.pt", weights_only=False)
    assert os.listdir(tmp_path) == ["x.pt"]


def storage(count, dtype="FloatStorage", offset=0, size=(2,), stride=(1,), key="0"):
    """Returns a pickle of one tensor."""
    def number(n):
        return pickle.dumps(n, 2)[2:-1]
    return (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\n" + dtype.encode() + b"\n" + number(key)
            + number("cpu") + number(count) + b"tQ" + number(offset) + number(size) + number(stride) + b"\x89ccollections\n"
            b"OrderedDict\n)RtR.")


def test_a_tensor_lies_within_its_elements(tmp_path):
    path = tmp_path / "x.pt"
    archive(path, storage(2), data__0=bytes(8))
    assert plugrad.load(path).tolist() == [0, 0]
    for wrong in (storage(3), storage(2, offset=1), storage(2, size=(3,)), storage(2, size=(2, 2), stride=(1, 1)),
                  storage(2, size=(2**62, 2**62), stride=(0, 0)), storage(2, offset=-1), storage(2, stride=(-1,)),
                  storage(2, size=(-2,)), storage(-1), storage("2"), storage(2, key="1"), storage(2, "ComplexFloatStorage"),
                  storage(2, size="ab"), storage(2, stride=None)):
        archive(path, wrong, data__0=bytes(8))
        with pytest.raises((OSError, ValueError, MemoryError)):
            plugrad.load(path)


def test_no_damage_does_more_than_fail(root):
    """Runs for PLUGRAD_ARCHIVE_SECONDS, by default ten seconds."""
    seconds = os.environ.get("PLUGRAD_ARCHIVE_SECONDS", "10")
    ran = subprocess.run([sys.executable, Path(__file__).with_name("archive_fuzz.py"),
                          root / "tests/fixtures/torch_checkpoint.pt", seconds, "1"], capture_output=True, text=True)
    assert ran.returncode == 0 and " 0 went wrong" in ran.stdout, ran.stdout[-4000:] + ran.stderr[-1000:]


def test_damaged_files(tmp_path):
    path = tmp_path / "x.pt"
    plugrad.save(everything(), path)
    whole = path.read_bytes()
    for length in range(4, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(OSError):
            plugrad.load(path)
    for at in range(0, 3000, 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1:])
        try:
            plugrad.load(path)
        except (OSError, ValueError, MemoryError):
            pass
    central = whole.index(b"PK\x01\x02")
    path.write_bytes(whole[:central + 8] + b"\x01" + whole[central + 9:])  # the flag for an encrypted first entry
    with pytest.raises(OSError, match="encrypted"):
        plugrad.load(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/data.pkl", bytes(1 << 20))
    with pytest.raises(OSError, match="packed"):
        plugrad.load(path)
    path.write_bytes(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")
    with pytest.raises(OSError, match="before 1.6"):
        plugrad.load(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.txt", "b")
    with pytest.raises(OSError, match="no file of torch.save"):
        plugrad.load(path)
