"""Files and data sets."""
import gzip
import os
import struct
import sys
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
        plugrad.save([1], tmp_path / "x.safetensors")
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


def test_one_tensor_or_some_rows_of_a_safetensors_file(tmp_path):
    x = plugrad.arange(24, dtype="f32").reshape(4, 3, 2)
    plugrad.save({"x": x, "s": plugrad.tensor(5)}, tmp_path / "a", {"k": "v"})
    with plugrad.safe_open(tmp_path / "a", framework="pt", device="reference") as file:
        assert file.keys() == ["s", "x"] and "x" in file and len(file) == 2 and file.metadata() == {"k": "v"}
        assert file.get_tensor("x").tolist() == x.tolist() and file.get_tensor("x").device == "reference"
        part = file.get_slice("x")
        assert (part.get_shape(), part.get_dtype()) == ([4, 3, 2], "F32")
        for key in (1, -1, slice(1, 3), slice(None), slice(3, 1), slice(None, None, 2), slice(-2, None), (slice(1, 2), 0),
                    (2, slice(None), 1), ..., (0, ..., 1), slice(9, None), (slice(None), [0, 2])):
            assert part[key].tolist() == x[key].tolist() and part[key].shape == x[key].shape, key
        assert file.get_slice("s")[()].item() == 5
        with pytest.raises(IndexError):
            part[4]
        with pytest.raises(ValueError, match='has no tensor "y"'):
            file.get_tensor("y")
    with pytest.raises(ValueError, match="is closed"):
        file.keys()
    plugrad.save({"x": x}, tmp_path / "b")
    assert plugrad.safe_open(tmp_path / "b").metadata() is None
    with pytest.raises(OSError, match="nowhere"):
        plugrad.safe_open(tmp_path / "nowhere")


def test_npy_files_are_those_of_numpy(tmp_path):
    numpy = pytest.importorskip("numpy")
    generator = numpy.random.default_rng(0)
    for dtype in ("bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64"):
        for shape in ((), (0,), (3,), (2, 3), (2, 0, 3), (2, 3, 4)):
            for order in "CF":
                given = (generator.normal(0, 50, shape) % 100).astype(dtype)
                array = numpy.asarray(given, order=order)
                for swapped in (array, array.astype(array.dtype.newbyteorder(">"))):
                    numpy.save(tmp_path / "a.npy", swapped)
                    x = plugrad.load_npy(tmp_path / "a.npy")
                    assert x.shape == shape and numpy.array_equal(x.numpy(), array) and x.numpy().dtype == array.dtype
                plugrad.save(x, tmp_path / "b.npy")
                numpy.save(tmp_path / "c.npy", given)
                assert (tmp_path / "b.npy").read_bytes() == (tmp_path / "c.npy").read_bytes()
    assert plugrad.load(tmp_path / "b.npy").shape == (2, 3, 4)


@pytest.mark.parametrize(("dtype", "words"), [("uint32", "astype"), ("clongdouble", "complex128"), ("object", "Python"),
                                              ("longdouble", "longdouble"), ("U3", "elements of type 'U3'")])
def test_what_numpy_has_and_plugrad_has_not(tmp_path, dtype, words):
    numpy = pytest.importorskip("numpy")
    numpy.save(tmp_path / "a.npy", numpy.zeros(3).astype(dtype), allow_pickle=True)
    with pytest.raises(OSError, match=words):
        plugrad.load_npy(tmp_path / "a.npy")


def test_npz_files_are_those_of_numpy(tmp_path):
    numpy = pytest.importorskip("numpy")
    arrays = {"x": numpy.arange(6.0).reshape(2, 3), "é": numpy.array(True), "none": numpy.zeros((0, 2), "int16")}
    for write in (numpy.savez, numpy.savez_compressed):
        write(tmp_path / "a.npz", **arrays)
        read = plugrad.load_npz(tmp_path / "a.npz")
        assert read.keys() == arrays.keys()
        assert all(numpy.array_equal(read[name].numpy(), array) for name, array in arrays.items())
    for compress in (False, True):
        plugrad.save_npz(read, tmp_path / "b.npz", compress=compress)
        with numpy.load(tmp_path / "b.npz") as again:
            assert set(again.files) == set(arrays)
            assert all(numpy.array_equal(again[name], array) for name, array in arrays.items())
    plugrad.save(read, tmp_path / "c.npz")
    assert plugrad.load(tmp_path / "c.npz")["x"].tolist() == arrays["x"].tolist()
    for bad, path in (({"x": plugrad.ones(1)}, "d.npy"), (plugrad.ones(1), "d.npz"), ([1], "d.npz")):
        with pytest.raises(TypeError, match="save"):
            plugrad.save(bad, tmp_path / path)
    with pytest.raises(ValueError, match="metadata"):
        plugrad.save(plugrad.ones(1), tmp_path / "d.npy", {"k": "v"})
    with pytest.raises(ValueError, match="bf16"):
        plugrad.save_npy(plugrad.ones(1, dtype="bf16"), tmp_path / "d.npy")


def test_gguf_blocks_decode_as_numpy_decodes_them(tmp_path):
    numpy = pytest.importorskip("numpy")
    import gguf_files
    generator = numpy.random.default_rng(1)
    for kind, (number, elements, _, _) in gguf_files.BLOCKS.items():
        blocks = gguf_files.random_blocks(kind, 12, generator)
        expected = gguf_files.decode(kind, blocks).reshape(2, 3, 2 * elements)
        path = gguf_files.write(tmp_path / "a.gguf", [], [("x", (2, 3, 2 * elements), number, blocks.tobytes())])
        with plugrad.open_gguf(path) as file:
            assert file.info("x") == (kind, (2, 3, 2 * elements), blocks.nbytes)
            assert numpy.array_equal(file.get_tensor("x").numpy(), expected), kind
            assert numpy.array_equal(file.get_slice("x")[1, 2:].numpy(), expected[1, 2:]), kind
            assert file.raw("x") == blocks.tobytes()
        rows = expected.reshape(6, -1)
        path = gguf_files.write(tmp_path / "b.gguf", [], [("x", rows.shape, number, blocks.tobytes())])
        with plugrad.open_gguf(path) as file:
            weight = file.get_quantized("x")
            bits = weight.codes.shape[1] * 8 // rows.shape[1]
            assert bits == {"Q2": 2, "Q3": 4, "Q4": 4}.get(kind[:2], 8)
            assert numpy.array_equal(plugrad.dequantize(*weight, bits).numpy(), rows), kind


def test_gguf_files(tmp_path):
    pytest.importorskip("numpy")
    import gguf_files as g
    entries = [g.entry("name", 8, g.text("é")), g.entry("bad", 8, struct.pack("<Q", 1) + b"\xff"),
               g.entry("list", 9, g.texts(["a", "b"])), g.entry("eps", 6, struct.pack("<f", 0.5)),
               g.entry("on", 7, b"\1"), g.entry("n", 10, struct.pack("<Q", 2**64 - 1))]
    halves = struct.pack("<4e", 1, 2, 3, 4)
    path = g.write(tmp_path / "a.gguf", entries, [("h", (2, 2), 1, halves), ("q", (256,), 16, bytes(66)),
                                                  ("flat", (32,), 2, bytes(18))])
    file = plugrad.GGUF(path, device="reference")
    assert file.version == 3 and file.keys() == ["h", "q", "flat"]
    assert file.metadata == {"name": "é", "bad": "\udcff", "list": ["a", "b"], "eps": 0.5, "on": True, "n": 2**64 - 1}
    x = file.get_tensor("h")
    assert x.dtype == "f16" and x.tolist() == [[1, 2], [3, 4]] and x.device == "reference"
    assert file.get_slice("h")[1].tolist() == [3, 4] and file.get_slice("flat")[3:5].tolist() == [0, 0]
    assert file.info("q").type == "IQ2_XXS" and file.raw("q") == bytes(66)
    with pytest.raises(NotImplementedError, match="has the type IQ2_XXS; these can be read: F32, F16"):
        file.get_tensor("q")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(OSError, match="may be cut short"):
        plugrad.open_gguf(path)


def test_cifar(tmp_path):
    def records(labels):
        return b"".join(bytes(each) + bytes([51]) * 3072 for each in labels)
    for i in range(1, 6):
        (tmp_path / f"data_batch_{i}.bin").write_bytes(records([[i]]))
    (tmp_path / "test_batch.bin").write_bytes(records([[9], [0]]))
    (tmp_path / "train.bin").write_bytes(records([[19, 99]]))
    (tmp_path / "test.bin").write_bytes(records([[1, 2]]))
    (images, labels), (_, test_labels) = data.cifar10(tmp_path)
    assert images.shape == (5, 3, 32, 32) and images[0, 0, 0, 0].item() == pytest.approx(0.2)
    assert (labels.tolist(), test_labels.tolist(), labels.dtype) == ([1, 2, 3, 4, 5], [9, 0], "i64")
    assert [data.cifar100(tmp_path, coarse)[0][1].item() for coarse in (False, True)] == [99, 19]
    with pytest.raises(OSError, match="binary version of CIFAR"):
        data.cifar10(tmp_path / "nowhere")


def test_images(tmp_path, monkeypatch):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    picture = image.new("RGB", (3, 2))
    picture.putpixel((2, 1), (255, 51, 0))
    picture.save(tmp_path / "a.png")
    x = data.read_image(tmp_path / "a.png")
    assert x.shape == (2, 3, 3) and x.dtype == "u8" and x[1, 2].tolist() == [255, 51, 0]
    y = data.read_image(tmp_path / "a.png", scaled=True)
    assert y.shape == (3, 2, 3) and y.dtype == "f32" and y[:, 1, 2].tolist() == pytest.approx([1, 0.2, 0])
    assert data.read_image(tmp_path / "a.png", "L").shape == (2, 3, 1)
    with pytest.raises(ValueError, match="mode 'X'"):
        data.read_image(tmp_path / "a.png", "X")
    (tmp_path / "b.png").write_bytes(b"no picture")
    with pytest.raises(OSError):
        data.read_image(tmp_path / "b.png")


def test_images_without_pillow(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match="pip install pillow"):
        data.read_image("a.png")
