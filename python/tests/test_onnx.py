import concurrent.futures
import importlib.util
import json
import threading
import urllib.error
import urllib.request

import numpy as np
import onnx_files as files
import pytest

import plugrad
import plugrad.onnx


@pytest.fixture
def dense(tmp_path):
    """relu(x w + b) of x (batch, 2)."""
    return files.write(
        tmp_path / "dense.onnx",
        [files.node("MatMul", ["x", "w"], ["xw"]), files.node("Add", ["xw", "b"], ["sum"]),
         files.node("Relu", ["sum"], ["y"])],
        [files.value("x", "float32", ["batch", 2])], [files.value("y", "float32", ["batch", 3])],
        [files.tensor("w", np.array([[1, 2, 3], [4, 5, 6]], "f4")), files.tensor("b", np.array([1, 0, -1], "f4"))])


def test_calls_by_position_and_by_name_on_arrays_and_tensors(dense):
    model = plugrad.onnx.load(dense)
    assert model.inputs == [("x", "float32", ("batch", 2))]
    assert model.outputs == [("y", "float32", ("batch", 3))]
    x = np.array([[1, -1], [0, 1]], "f4")
    expected = [[0, 0, 0], [5, 5, 5]]
    for y in (model(x), model(x=x), model({"x": x}), model(plugrad.tensor(x))):
        assert isinstance(y, plugrad.Tensor)
        assert y.tolist() == expected
    arrays = model.run(["y"], {"x": x})
    assert isinstance(arrays[0], np.ndarray)
    assert arrays[0].tolist() == expected
    assert "1 calls recorded" in model.explain()


def test_wrong_arguments_are_named(dense):
    model = plugrad.onnx.load(dense)
    x = np.zeros((1, 2), "f4")
    for call, message in ((lambda: model(), "'x' is missing: the model's inputs are x"),
                          (lambda: model(x, x), "2 inputs are given"),
                          (lambda: model(x, x=x), "'x' is unknown or given twice"), (lambda: model(z=x), "'z' is unknown")):
        with pytest.raises(TypeError, match=message):
            call()
    with pytest.raises(ValueError, match=r"input x: float32 \(batch, 2\) is expected, not f64 \(1, 2\)"):
        model(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="there is no output 'z': the outputs are y"):
        model.run(["z"], {"x": x})


def test_saves_a_model(dense, tmp_path):
    x = np.array([[1, -1]], "f4")
    model = plugrad.onnx.load(dense)
    model.save(tmp_path / "dense.plugrad", x)
    saved = plugrad.load_model(tmp_path / "dense.plugrad")
    assert saved(plugrad.tensor(x)).tolist() == model(x).tolist()


def test_a_compiled_function_becomes_an_onnx_model(tmp_path):
    layers = plugrad.nn.Sequential(plugrad.nn.Linear(4, 8), plugrad.nn.GELU(), plugrad.nn.LayerNorm(8))
    with plugrad.no_grad():
        step = plugrad.compile(layers.eval())
        x = plugrad.randn((3, 4))
        expected = step(x).numpy()
        step(x)
    step.save(tmp_path / "layers.onnx")
    model = plugrad.onnx.load(tmp_path / "layers.onnx")
    assert model.inputs == [("input0", "float32", (3, 4))]
    assert np.allclose(model(x).numpy(), expected, atol=1e-6)
    session = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed").InferenceSession(
        tmp_path / "layers.onnx", providers=["CPUExecutionProvider"])
    assert np.allclose(session.run(None, {"input0": x.numpy()})[0], expected, atol=1e-6)
    checker = pytest.importorskip("onnx.checker", reason="the package onnx is not installed")
    checker.check_model(tmp_path / "layers.onnx", full_check=True)


def test_bound_inputs_decide_shapes(tmp_path):
    path = files.write(tmp_path / "expand.onnx", [files.node("Expand", ["x", "shape"], ["y"])],
                       [files.value("x", "float32", [1]), files.value("shape", "int64", ["rank"])],
                       [files.value("y", "float32", ["n"])])
    x = np.array([2], "f4")
    free, bound = plugrad.onnx.load(path), plugrad.onnx.load(path, bind={"shape": np.array([3])})
    assert free(x, np.array([2])).tolist() == [2, 2]
    assert "are read by Expand" in free.explain()
    assert [bound(x).tolist() for _ in range(2)] == [[2, 2, 2]] * 2
    assert "1 calls recorded" in bound.explain()
    with pytest.raises(NotImplementedError, match="cannot be recorded: .* read by Expand"):
        free.save(tmp_path / "no.plugrad", x, np.array([2]))


def test_unsigned_integers_are_carried_in_wider_ones(tmp_path):
    path = files.write(tmp_path / "add.onnx", [files.node("Add", [name, name], ["2" + name]) for name in ("a", "b", "c")],
                       [files.value("a", "uint16", [2]), files.value("b", "uint32", [1]), files.value("c", "uint64", [1])],
                       [files.value("2a", "uint16", [2]), files.value("2b", "uint32", [1]),
                        files.value("2c", "uint64", [1])])
    a, b, c = np.array([40000, 1], "u2"), np.array([3 << 30], "u4"), np.array([3 << 62], "u8")
    model = plugrad.onnx.load(path)
    arrays = model.run(None, {"a": a, "b": b, "c": c})
    assert [each.dtype for each in arrays] == [a.dtype, b.dtype, c.dtype]
    assert [each.tolist() for each in arrays] == [(each + each).tolist() for each in (a, b, c)]
    found = model(a, b, c)
    assert [each.dtype for each in found] == [plugrad.int32, plugrad.int64, plugrad.int64]
    assert found[0].tolist() == (a + a).tolist()
    assert found[1].tolist() == (b + b).tolist()
    assert found[2].numpy().view("u8").tolist() == (c + c).tolist()


def test_sequences_are_lists(tmp_path):
    path = files.write(tmp_path / "sequence.onnx",
                       [files.node("ConcatFromSequence", ["parts"], ["whole"], axis=0),
                        files.node("SplitToSequence", ["whole"], ["rows"])],
                       [files.sequence("parts", "float32")],
                       [files.value("whole", "float32", ["n"]), files.sequence("rows", "float32")])
    model = plugrad.onnx.load(path)
    assert model.inputs[0].type == "sequence of float32"
    whole, rows = model([np.array([1, 2], "f4"), np.array([3], "f4")])
    assert whole.tolist() == [1, 2, 3]
    assert [row.tolist() for row in rows] == [[1], [2], [3]]


def test_files_that_cannot_run_are_refused(tmp_path):
    (tmp_path / "text.onnx").write_bytes(b"no model")
    with pytest.raises(OSError, match="is not an ONNX file or is damaged"):
        plugrad.onnx.load(tmp_path / "text.onnx")
    with pytest.raises(OSError, match="missing.onnx"):
        plugrad.onnx.load(tmp_path / "missing.onnx")
    path = files.write(tmp_path / "new.onnx", [files.node("Twist", ["x"], ["y"])], [files.value("x", "float32", [1])],
                       [files.value("y", "float32", [1])])
    with pytest.raises(NotImplementedError, match='not implemented, at these nodes: Twist \\("Twist node"\\)'):
        plugrad.onnx.load(path)


def test_lanes_serve_many_threads(dense):
    model = plugrad.onnx.load(dense, lanes=3)
    inputs = [np.arange(2 * n, dtype="f4").reshape(n, 2) - n for n in (1, 2, 5)]
    expected = [np.maximum(x @ np.array([[1, 2, 3], [4, 5, 6]]) + [1, 0, -1], 0).tolist() for x in inputs]
    wrong = []

    def work(first):
        for i in range(first, first + 60):
            if model(inputs[i % 3]).tolist() != expected[i % 3]:
                wrong.append(i)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
    with pytest.raises(ValueError, match="0 lanes"):
        plugrad.onnx.load(dense, lanes=0)


def test_calls_are_cancelled(tmp_path, dense):
    count = 20_000
    nodes = [files.node("Neg", [f"x{i}"], [f"x{i + 1}"]) for i in range(count)]
    path = files.write(tmp_path / "chain.onnx", nodes, [files.value("x0", "float32", ["n"])],
                       [files.value(f"x{count}", "float32", ["n"])])
    model, x = plugrad.onnx.load(path, record=False), np.array([1, 2], "f4")
    for _ in range(20):  # the timer may be late
        cancellation = plugrad.Cancellation()
        threading.Timer(0.003, cancellation.cancel).start()
        try:
            with cancellation:
                model(x)
        except concurrent.futures.CancelledError as error:
            assert "[cancel]" in str(error)
            break
    else:
        pytest.fail("no call was cancelled")
    assert model(x).tolist() == [1, 2]
    small, step = plugrad.onnx.load(dense), plugrad.compile(lambda x: x + 1)
    for call in (lambda: small(np.zeros((1, 2), "f4")), lambda: step(plugrad.ones(2))):
        with cancellation, pytest.raises(concurrent.futures.CancelledError):
            call()
        call()
    assert cancellation.cancelled and not plugrad.Cancellation().cancelled


def test_the_server_batches_samples_of_several_lengths(tmp_path, root):
    path = files.write(
        tmp_path / "sums.onnx",
        [files.node("Cast", ["ids"], ["tokens"], to=1), files.node("Mul", ["tokens", "mask"], ["seen"]),
         files.node("ReduceSum", ["seen", "axes"], ["sum"], keepdims=0)],
        [files.value("ids", "int64", ["batch", "length"]), files.value("mask", "float32", ["batch", "length"])],
        [files.value("sum", "float32", ["batch"]), files.value("tokens", "float32", ["batch", "length"])],
        [files.tensor("axes", np.array([1], "i8"))])
    spec = importlib.util.spec_from_file_location("serve", root / "examples/serve/serve.py")
    serve = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(serve)
    server = serve.Server(str(path), port=0)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def ask(request):
        url = f"http://127.0.0.1:{server.server_address[1]}"
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(request).encode()), timeout=60) as answer:
            return json.load(answer)

    def of_length(n):
        return ask({"ids": list(range(n)), "mask": [1] * n})
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        for n, answer in enumerate(pool.map(of_length, range(1, 61)), 1):
            assert answer == {"sum": n * (n - 1) / 2, "tokens": list(range(n))}
    with pytest.raises(urllib.error.HTTPError, match="400"):
        ask({"ids": [1]})
    assert of_length(3)["sum"] == 3  # a wrong request hurts no other
    server.shutdown()
    server.server_close()
