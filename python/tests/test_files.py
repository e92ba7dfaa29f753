"""Files and data sets."""
import gzip
import os
import struct
from pathlib import Path

import plugrad
import pytest
from plugrad import data


def test_save_and_load(tmp_path):
    tensors = {"a": plugrad.tensor([[1.5, 2]]), "b": plugrad.tensor([True]), "c": plugrad.arange(3, dtype="i64"),
               "d": plugrad.zeros((0, 2), dtype="f64")}
    plugrad.save(tensors, str(tmp_path / "x.safetensors"))
    again = plugrad.load(tmp_path / "x.safetensors", device="reference")
    assert again.keys() == tensors.keys()
    for name, x in tensors.items():
        assert (again[name].tolist(), again[name].dtype, again[name].shape) == (x.tolist(), x.dtype, x.shape)
    assert all(v.device == "reference" and not v.requires_grad for v in again.values())
    with pytest.raises(OSError, match="nowhere"):
        plugrad.load(tmp_path / "nowhere")
    (tmp_path / "broken").write_bytes(b"12345678{}")
    with pytest.raises(OSError):
        plugrad.load(tmp_path / "broken")
    with pytest.raises(TypeError):
        plugrad.save([1], tmp_path / "x")
    with pytest.raises(OSError):
        plugrad.save(tensors, tmp_path / "no" / "folder")


def test_safetensors_of_others(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    import numpy
    safetensors.save_file({"x": numpy.arange(3.0)}, tmp_path / "theirs")
    assert plugrad.load(tmp_path / "theirs")["x"].tolist() == [0, 1, 2]
    plugrad.save({"y": plugrad.ones((2,))}, tmp_path / "ours")
    assert safetensors.load_file(tmp_path / "ours")["y"].tolist() == [1, 1]


def test_moons():
    points, labels = data.moons(50, noise=0.05, seed=1)
    assert points.shape == (50, 2) and points.dtype == "f32" and labels.sum().item() == 25 and labels.dtype == "i64"
    assert data.moons(50, seed=1)[0].tolist() == data.moons(50, seed=1)[0].tolist() != data.moons(50, seed=2)[0].tolist()
    with pytest.raises(ValueError):
        data.moons(-1)


def idx(*extents, elements):
    return struct.pack(f">HBB{len(extents)}I", 0, 8, len(extents), *extents) + bytes(elements)


def test_read_idx(tmp_path):
    (tmp_path / "plain").write_bytes(idx(2, 2, elements=[0, 1, 2, 255]))
    with gzip.open(tmp_path / "packed.gz", "wb") as file:
        file.write(idx(3, elements=[7, 8, 9]))
    assert data.read_idx(tmp_path / "plain").tolist() == [[0, 1], [2, 255]]
    assert data.read_idx(tmp_path / "packed.gz").tolist() == [7, 8, 9]
    (tmp_path / "short").write_bytes(idx(9, elements=[1]))
    with pytest.raises(OSError):
        data.read_idx(tmp_path / "short")


def test_fashion_mnist_from_a_folder(tmp_path):
    for kind, count in (("train", 3), ("t10k", 2)):
        (tmp_path / f"{kind}-images-idx3-ubyte").write_bytes(idx(count, 2, 2, elements=range(0, 4 * count)))
        (tmp_path / f"{kind}-labels-idx1-ubyte").write_bytes(idx(count, elements=range(count)))
    (images, labels), (test_images, test_labels) = data.fashion_mnist(tmp_path)
    assert images.shape == (3, 2, 2) and labels.tolist() == [0, 1, 2] and test_images.shape == (2, 2, 2)
    assert test_labels.dtype == "i64"
    assert images[0].flatten().tolist() == pytest.approx([0, 1 / 255, 2 / 255, 3 / 255])
    with pytest.raises(OSError, match="dataset-fashion-mnist"):
        data.fashion_mnist(tmp_path / "nowhere")


@pytest.mark.skipif(not Path("/usr/share/datasets/fashion-mnist").is_dir(),
                    reason="Debian's package dataset-fashion-mnist is not installed")
def test_fashion_mnist_of_debian():
    (images, labels), (test_images, _) = data.fashion_mnist()
    assert images.shape == (60000, 28, 28) and test_images.shape == (10000, 28, 28)
    assert 0 <= images.min().item() < images.max().item() == 1
    assert labels.max().item() == 9


def test_rows():
    x = plugrad.tensor([[[1.0, 2.0]], [[3.0, 4.0]]], requires_grad=True)
    picked = data.rows(x, [1, 1, 0])
    assert picked.tolist() == [[[3, 4]], [[3, 4]], [[1, 2]]] and data.rows(plugrad.arange(5), [4, 0]).tolist() == [4, 0]
    picked.sum().backward()
    assert x.grad.tolist() == [[[1, 1]], [[2, 2]]]
    with pytest.raises(IndexError):
        data.rows(x, [2])


def test_paths_may_hold_any_bytes(tmp_path):
    name = os.fsencode(tmp_path) + b"/\xff.safetensors"
    try:
        plugrad.save({"a": plugrad.ones((1,))}, name)
    except UnicodeEncodeError:
        pytest.skip("names that are no UTF-8 do not pass")
    assert plugrad.load(name)["a"].item() == 1
