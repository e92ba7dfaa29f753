"""Operators, subscripts, and the functions that come from the core's headers."""
import math
import re

import plugrad
import pytest
from plugrad import Tensor


@pytest.mark.parametrize("op, expected", [
    (lambda a, b: a + b, [5, 10]), (lambda a, b: a - b, [3, 6]), (lambda a, b: a * b, [4, 16]), (lambda a, b: a / b, [4, 4]),
    (lambda a, b: a ** b, [4, 64]), (lambda a, b: a + 1, [5, 9]), (lambda a, b: 1 + a, [5, 9]), (lambda a, b: a - 1, [3, 7]),
    (lambda a, b: 1 - a, [-3, -7]), (lambda a, b: a * 2.5, [10, 20]), (lambda a, b: 2.5 * a, [10, 20]),
    (lambda a, b: a / 2, [2, 4]),
    (lambda a, b: 16 / a, [4, 2]), (lambda a, b: a ** 2, [16, 64]), (lambda a, b: 2 ** b, [2, 4]),
    (lambda a, b: -a, [-4, -8]),
    (lambda a, b: +a, [4, 8]), (lambda a, b: abs(-a), [4, 8]), (lambda a, b: a == 4, [True, False]),
    (lambda a, b: a != 4, [False, True]),
    (lambda a, b: a < 5, [True, False]), (lambda a, b: a <= 4, [True, False]), (lambda a, b: a > b, [True, True]),
    (lambda a, b: 5 >= a, [True, False]), (lambda a, b: a @ b, 20)])
def test_operators(op, expected):
    assert op(Tensor([4, 8]), Tensor([1, 2])).tolist() == expected


@pytest.mark.parametrize("wrong", ["1", None, b"1", object()])
def test_other_operands_are_type_errors(wrong):
    for op in (lambda x: x + wrong, lambda x: wrong * x, lambda x: x ** wrong, lambda x: x < wrong, lambda x: x @ wrong):
        with pytest.raises(TypeError):
            op(Tensor([1.0]))


MIXED = [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a ** b,
         lambda a, b: a @ b, lambda a, b: a == b, lambda a, b: a != b, lambda a, b: a < b, lambda a, b: a >= b]


@pytest.mark.parametrize("op", MIXED, ids=range(len(MIXED)))
def test_lists_and_arrays_beside_a_tensor(op):
    numpy = pytest.importorskip("numpy")

    class Foreign:  # like a tensor of another library
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **named):
            return self.array.__dlpack__(**named)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()
    t, other = Tensor([1.0, 4.0]), [3.0, 4.0]
    array = numpy.array(other, dtype="float32")
    for each in (other, tuple(other), array, Foreign(array)):
        for result, expected in ((op(t, each), op(t, Tensor(other))), (op(each, t), op(Tensor(other), t))):
            assert isinstance(result, Tensor) and result.tolist() == expected.tolist() and result.dtype == expected.dtype
    x = op(array, t)
    assert x.requires_grad == (x.dtype == "f32")


def test_dtypes_beside_a_tensor():
    numpy = pytest.importorskip("numpy")
    labels, mask = plugrad.tensor([1, 2], dtype="i64"), plugrad.tensor([True, False])
    assert numpy.mean(labels == numpy.array([1, 3])) == 0.5 and (labels == [1, 3]).tolist() == [True, False]
    assert (labels + [1, 1]).dtype == "i64" and (mask == [True, True]).tolist() == [True, False]
    assert (plugrad.tensor([1.5]) * numpy.array(2)).tolist() == [3]
    assert (labels == numpy.bool_(True)).tolist() == [True, False]
    assert (labels == None).__class__ is bool and (labels == "a") is False  # noqa: E711
    with pytest.raises(TypeError, match="str is not a number"):
        labels == ["a", "b"]


def test_numpys_functions():
    numpy = pytest.importorskip("numpy")
    t = Tensor([1.0, 4.0])
    assert isinstance(numpy.sqrt(t), Tensor) and numpy.sqrt(t).requires_grad and numpy.sqrt(t).tolist() == [1, 2]
    assert numpy.maximum(t, numpy.array([3.0, 3.0], dtype="f")).tolist() == [3, 4]
    assert numpy.log2(t.detach()).tolist() == [0, 2] and numpy.sum(t.detach(), axis=0) == 5
    with pytest.raises(TypeError, match=r"^\[numpy.cbrt\] NumPy would lose the gradient"):
        numpy.cbrt(t)
    with pytest.raises(TypeError, match=r"^\[numpy.mean\] NumPy would lose the gradient"):
        numpy.mean(t)
    assert numpy.array_equal(t, [1, 4]) and numpy.argmax(t) == 1
    array = numpy.ones(2, dtype="float32")
    array += t.detach()
    assert isinstance(array, numpy.ndarray) and array.tolist() == [2, 5]


def test_numpys_numbers_beside_a_tensor():
    numpy = pytest.importorskip("numpy")
    t = Tensor([1.0, 2.0])
    assert (t * numpy.float32(2)).tolist() == [2, 4] and (numpy.float64(2) * t).tolist() == [2, 4]
    assert (t + numpy.int64(1)).tolist() == [2, 3]


def test_huge_and_fractional_numbers():
    assert (Tensor([1.0]) * 10**30).item() == pytest.approx(1e30)
    assert (Tensor([1], dtype="i64") * 2**40).item() == 2**40
    assert (Tensor([1.0]) + True).item() == 2


def test_in_place_operators():
    t = plugrad.ones((2,))
    same = t
    t += 2
    t *= Tensor([1, 2], requires_grad=False)
    t -= 1
    t /= 2
    assert t is same and t.tolist() == [1, 2.5]
    w = Tensor([1.0])
    with plugrad.no_grad():
        w += 1
        w -= plugrad.ones((1,))
    assert w.is_leaf and w.item() == 1
    y = before = w * 2
    y += 1  # recorded, so the result is a new tensor
    assert y is not before and before.item() == 2
    y.backward()
    assert w.grad.item() == 2
    with plugrad.no_grad():
        w -= [0.5]
    assert w.item() == 0.5


@pytest.mark.parametrize("op", ["+=", "-=", "*=", "/="])
def test_a_leaf_with_a_gradient_is_not_changed_while_recording(op):
    w = Tensor([1.0])
    with pytest.raises(ValueError, match=re.escape(f"[{op}]") + ".*no_grad"):
        exec(f"w {op} 2")
    assert w.item() == 1


T = [[[i * 12 + j * 4 + k for k in range(4)] for j in range(3)] for i in range(2)]


@pytest.mark.parametrize("key", [
    0, -1, (1, 2), (1, 2, 3), slice(None), slice(0, 1), (slice(None), 1), (slice(None), slice(None, None, 2)),
    (slice(None), slice(None, None, -1)),
    (..., 0), (0, ...), (..., slice(3, 0, -2)), (None, 0), (slice(None), None), (..., None), (slice(5, 9),),
    (slice(-2, None), -1, slice(1, 3)),
    (), ..., None, (slice(None, None, -3), ..., None, 1), slice(10**30, -10**30, -1)], ids=str)
def test_indexing_is_numpys(key):
    numpy = pytest.importorskip("numpy")
    expected = numpy.array(T, dtype=numpy.float32)[key]
    t = plugrad.tensor(T)
    assert t[key].tolist() == expected.tolist() and t[key].shape == expected.shape
    x = plugrad.tensor(T, dtype="f32", requires_grad=True)
    x[key].sum().backward()
    gradient = numpy.zeros_like(numpy.array(T, dtype=numpy.float32))
    gradient[key] += 1
    assert x.grad.tolist() == gradient.tolist()


@pytest.mark.parametrize("key, error",
                         [(2, IndexError), ((0, 3), IndexError), ((0, 0, 0, 0), IndexError), ((..., ...), IndexError),
                          (slice(0, 1, 0), ValueError), (1.0, TypeError), ("a", TypeError), ({1}, TypeError),
                          ([0.5], IndexError), ([2], IndexError), ([[0], [1, 0]], ValueError), ([None], TypeError),
                          ([True], IndexError), (([0, 1], [0, 1, 2]), IndexError), (10**30, IndexError)], ids=str)
def test_wrong_keys(key, error):
    with pytest.raises(error):
        plugrad.tensor(T)[key]


def test_tensors_as_keys():
    t = plugrad.arange(3)
    assert t[Tensor(1, dtype="i64")].item() == 1
    assert t[t > 1].tolist() == [2] and t[t * 2 - 2].tolist() == [1, 0, 2]
    with pytest.raises(IndexError, match=r"^\[index\].*f32"):
        t[plugrad.ones(3)]


def test_assignment():
    t = plugrad.zeros((2, 3))
    t[0] = 1
    t[:, -1] = [7, 8]
    t[1, ::2] = plugrad.tensor([5.0, 6.0])
    assert t.tolist() == [[1, 1, 7], [5, 0, 6]]
    with pytest.raises(ValueError):
        t[0] = [1, 2]
    with pytest.raises(IndexError):
        t[5] = 0
    with pytest.raises(TypeError):
        del t[0]
    w = Tensor([1.0, 2.0])
    with pytest.raises(ValueError, match="recording"):
        w[0] = 3
    with plugrad.no_grad():
        w[0] = 3
    assert w.tolist() == [3, 2]


def test_functions():
    x = plugrad.tensor([[1.0, -2.0], [3.0, 4.0]])
    assert plugrad.sum(x).item() == 6 and x.sum(0).tolist() == [4, 2] and x.sum(dim=(0, 1)).item() == 6
    assert x.sum(-1, keepdim=True).shape == (2, 1) and x.mean().item() == 1.5 and x.max().item() == 4
    assert x.min(axis=0).tolist() == x.min(dim=0).values.tolist() == [1, -2]
    assert x.argmax(1).tolist() == [0, 1] and x.argmax(1).dtype == "i64"
    assert plugrad.where(x > 0, x, 0).tolist() == [[1, 0], [3, 4]]
    assert plugrad.where(x > 0, x, -x).tolist() == [[1, 2], [3, 4]]
    assert plugrad.maximum(x, 0).tolist() == x.relu().tolist()
    assert x.minimum(plugrad.zeros((2,))).tolist() == [[0, -2], [0, 0]]
    assert plugrad.cat([x, x], dim=1).shape == (2, 4) and plugrad.stack([x, x, x]).shape == (3, 2, 2)
    assert x.unsqueeze(0).shape == (1, 2, 2) and x.unsqueeze(0).squeeze().shape == (2, 2)
    assert plugrad.ones((1, 2)).expand(3, -1).shape == (3, 2)
    assert x.permute(1, 0).tolist() == [[1, 3], [-2, 4]] and x.flatten().shape == (4,) and x.select(1, 0).tolist() == [1, 3]
    index = plugrad.tensor([[1], [0]], dtype="i64")
    assert x.gather(1, index).tolist() == [[-2], [3]]
    assert x.scatter_add(1, index, plugrad.ones((2, 1))).tolist() == [[1, -1], [4, 4]]
    assert plugrad.log_softmax(plugrad.zeros((2,)), 0).tolist() == pytest.approx([-math.log(2)] * 2)
    assert x.cast("i64").tolist() == [[1, -2], [3, 4]] and not x.clone().is_same(x)
    assert plugrad.pow(2, plugrad.tensor([3.0])).item() == 8 and plugrad.sub(1, x).tolist() == (1 - x).tolist()
    assert plugrad.broadcast_shapes((2, 1), [3]) == (2, 3)
    assert plugrad.cross_entropy(plugrad.zeros((2, 4)), plugrad.tensor([0, 3], dtype="i64"),
                                 reduction="sum").item() == pytest.approx(2 * math.log(4))
    for name in ("exp", "log", "tanh", "sigmoid", "sqrt", "abs", "neg", "sign"):
        assert getattr(x, name)().shape == (2, 2) and getattr(plugrad, name)(x).shape == (2, 2)


def test_factories():
    assert plugrad.zeros((2, 3)).tolist() == [[0] * 3] * 2 and plugrad.ones(2).tolist() == [1, 1]
    assert plugrad.full((2,), 7, dtype="i64").tolist() == [7, 7]
    assert plugrad.arange(0, 1, 0.25).tolist() == [0, 0.25, 0.5, 0.75]
    assert plugrad.arange(5, 0, -2, dtype="i64").tolist() == [5, 3, 1]
    assert plugrad.zeros_like(plugrad.ones((2,), dtype="f64")).dtype == "f64"
    assert plugrad.ones((1,), device="reference").device == "reference"
    plugrad.manual_seed(3)
    first = plugrad.rand((100,)).tolist()
    state = plugrad.generator_state()
    second = plugrad.randn((3,), mean=5, std=2).tolist()
    plugrad.set_generator_state(state)
    assert plugrad.randn((3,), mean=5, std=2).tolist() == second
    plugrad.manual_seed(3)
    assert plugrad.rand((100,)).tolist() == first and all(0 <= x < 1 for x in first)
    with pytest.raises(ValueError):
        plugrad.zeros((-1,))
    with pytest.raises(TypeError):
        plugrad.zeros("two")


@pytest.mark.parametrize("call", [lambda x: x.sum(5), lambda x: x.cat(), lambda x: plugrad.cat([]), lambda x: x.gather(0, x),
                                  lambda x: x.squeeze(2),
                                  lambda x: plugrad.cross_entropy(x, x.argmax()), lambda x: x.expand(3, 3),
                                  lambda x: plugrad.cross_entropy(x, plugrad.zeros((2,), dtype="i64"), reduction="median")])
def test_wrong_arguments(call):
    with pytest.raises((ValueError, TypeError, AttributeError)):
        call(plugrad.zeros((2, 2)))


def test_index_out_of_range():
    for wrong in (2, -3):
        with pytest.raises(IndexError, match=rf"^\[gather\] index {wrong} is out"):
            plugrad.zeros((2,)).gather(0, plugrad.tensor([wrong], dtype="i64"))


def test_indices_from_the_end():
    x, index = Tensor([[1.0, 2.0], [3.0, 4.0]]), plugrad.tensor([[-1], [0]], dtype="i64")
    assert x.take_along_dim(index, 1).tolist() == [[2], [3]]
    x.take_along_dim(index, 1).sum().backward()
    assert x.grad.tolist() == [[0, 1], [1, 0]]
    assert plugrad.put_along_axis(plugrad.zeros(2, 2), index, plugrad.ones(2, 1), 1).tolist() == [[0, 1], [1, 0]]


def test_names_of_numpy():
    x = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.sum(axis=0).tolist() == [4, 6] and plugrad.max(x, axis=1, keepdims=True).tolist() == [[2], [4]]
    assert x.sum(axis=None).item() == x.sum(dim=None).item() == 10 and plugrad.stack([x, x], axis=-1).shape == (2, 2, 2)
    assert plugrad.flip(x, axis=0).tolist() == x.flip(0).tolist()
    assert x.roll(1, axis=1).tolist() == x.roll(1, dims=1).tolist()
    assert x.log_softmax(axis=0).shape == (2, 2) and x.unsqueeze(axis=0).shape == (1, 2, 2)
    with pytest.raises(TypeError, match="'dim' is given twice"):
        x.sum(axis=0, dim=0)


def test_sizes_one_by_one():
    for make in (plugrad.zeros, plugrad.ones, plugrad.rand, plugrad.randn):
        assert make(2, 3).shape == make((2, 3)).shape == (2, 3) and make(2, 3, 4, dtype="f64").dtype == "f64"
        assert make((2, 3), "f64").dtype == "f64" and make(2, 1, device="reference").device == "reference"
    assert plugrad.full(2, 1, 7).tolist() == plugrad.full(2, 1, fill_value=7).tolist() == [[7], [7]]
    assert all(5 <= x < 6 for x in plugrad.rand(2, 2, low=5, high=6).flatten().tolist())


@pytest.mark.parametrize("call, message", [
    (lambda: plugrad.zeros("two"),
     r"^\[zeros\] 'shape' is a str, expected a whole number or a list of whole numbers: call zeros\(shape, dtype=None, "),
    (lambda: plugrad.ones(2).sum(rows=1), r"^\[sum\] there is no parameter 'rows': call sum\(dim=None, "),
    (lambda: plugrad.ones(2).sum("rows"),
     r"^\[sum\] 'dim' is a str, expected a whole number, a list of whole numbers or None: call"),
    (lambda: plugrad.zeros(), r"^\[zeros\] 'shape' is missing: call zeros\(shape, .* or zeros\(\*sizes, "),
    (lambda: plugrad.zeros((2,), 3), r"^\[zeros\] 'dtype' is an int, expected a dtype, a str or "),
    (lambda: plugrad.tensor(None), r"^\[Tensor\] 'data' is None: call"),
    (lambda: Tensor(), r"^\[Tensor\] 'data' is missing: call Tensor\(data, shape=None"),
    (lambda: plugrad.add(1, "x"),
     r"^\[add\] 'a' is an int, expected a Tensor, which plugrad.tensor\(\) makes: call add\(a, b\) or add\(a, b, alpha\)$"),
    (lambda: plugrad.add(plugrad.ones(2), "x"), r"^\[add\] 'b' is a str, expected a Tensor or a number: call add\(a, b\)"),
    (lambda: plugrad.matmul(plugrad.ones(2), [1, 2]),
     r"^\[matmul\] 'b' is a list, expected a Tensor, which plugrad.tensor\(\) "),
    (lambda: plugrad.ones(2).relu(1), r"^\[relu\] one argument too many: call relu\(\)$"),
    (lambda: plugrad.cat([plugrad.ones(2), 1]),
     r"^\[cat\] the arguments \(list\) hold something that does not fit: call cat"),
    (lambda: plugrad.linalg.inv("x"), r"^\[linalg.inv\] argument 1 is a str, expected a Tensor$"),
    (lambda: plugrad.data.moons("x"), r"^\[moons\] 'count' is a str, expected a whole number$"),
    (lambda: plugrad.nn.Linear("x", 2), r"^\[linear\] 'in_features' is a str, expected a whole number$"),
    (lambda: plugrad.draw_dot(3), r"^\[draw_dot\] 'root' is an int, expected a Tensor"),
    (lambda: setattr(plugrad.ones(2), "grad", 3), r"^\[grad\] 'grad' is an int, expected a Tensor or None$"),
    (lambda: plugrad.no_grad(len), r"^\[no_grad\] takes no argument: write `with no_grad\(\):`"),
    (lambda: plugrad.einsum(plugrad.ones(2)), r"^\[einsum\] "),
    (lambda: plugrad.ones(2).copy_("x"), r"^\[tensor\] str is not a number"),
    (lambda: plugrad.save({}, "x", {"epoch": 3}), r"^\[save\] .*'epoch' is of type int")])
def test_short_messages(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_arange_of_bools():
    with pytest.raises(ValueError, match=r"^\[arange\] bool"):
        plugrad.arange(3, dtype="bool")


def test_parameters_have_the_names_of_pytorch_and_of_numpy():
    x = plugrad.tensor([[1.0, 2.0], [3.0, 5.0]])
    for keywords in ({"dim": 0, "keepdim": True}, {"axis": 0, "keepdims": True}):
        assert x.sum(**keywords).tolist() == plugrad.sum(x, **keywords).tolist() == [[4.0, 7.0]]
        assert x.std(**keywords, correction=0).tolist() == [[1.0, 1.5]]
    with pytest.raises(TypeError):
        x.sum(axes=0)
    assert [part.tolist() for part in x.split(1, dim=1)] == [[[1.0], [3.0]], [[2.0], [5.0]]]
    assert isinstance(x.chunk(2), tuple) and x.split([2], axis=0)[0].shape == (2, 2)
    assert plugrad.unfold(x, dimension=1, size=1, step=1).shape == (2, 2, 1)


def test_arguments_that_may_be_left_out_may_be_none():
    x, weight = plugrad.tensor([[1.0, 2.0]]), plugrad.tensor([[3.0, 4.0]])
    assert plugrad.linear(x, weight, None).tolist() == plugrad.linear(x, weight).tolist() == [[11.0]]
    assert x.clamp(None, 1.5).tolist() == x.clamp(max=1.5).tolist() == [[1.0, 1.5]]
    target = plugrad.tensor([0], dtype="i64")
    assert plugrad.cross_entropy(x, target, weight=None, ignore_index=0, reduction="sum").item() == 0
    assert plugrad.max_pool1d(x, 2).tolist() == [[2.0]] and plugrad.pad(x, [1, 0], value=7).tolist() == [[7.0, 1.0, 2.0]]
    with pytest.raises(TypeError):
        plugrad.linear(None, weight)
    with pytest.raises(ValueError, match="approximate"):
        plugrad.gelu(x, approximate="cubic")
    assert abs(plugrad.gelu(x, approximate="tanh").tolist()[0][0] - 0.8412) < 1e-4


def test_running_statistics_and_gradients_change_in_place():
    mean, var = plugrad.zeros((1,)), plugrad.ones((1,))
    plugrad.batch_norm(plugrad.tensor([[1.0], [3.0]]), mean, var, training=True, momentum=0.5)
    assert mean.tolist() == [1.0] and var.tolist() == [1.5]
    x = plugrad.tensor([3.0, 4.0], requires_grad=True)
    (x * x).sum().backward()
    assert plugrad.clip_grad_norm_([x], 5.0).item() == 10 and abs(x.grad.tolist()[0] - 3) < 1e-5
    plugrad.clip_grad_value_([x], 1.0)
    assert x.grad.tolist() == [1.0, 1.0]


def test_a_declaration_that_cannot_be_translated_is_an_error(root, tmp_path, run_python):
    for folder in ("core/include/plugrad/ops", "sdk/include/plugrad/sdk"):
        (tmp_path / folder).mkdir(parents=True)
    for header in (root / "core/include/plugrad/ops").glob("*.hpp"):
        (tmp_path / "core/include/plugrad/ops" / header.name).write_text(header.read_text())
    (tmp_path / "sdk/include/plugrad/sdk/ops.def").write_text((root / "sdk/include/plugrad/sdk/ops.def").read_text())
    code = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    generate = root / "python/generate.py"
    run_python(code, generate, tmp_path, tmp_path / "out.cpp")
    before = (tmp_path / "out.cpp").read_text()
    (tmp_path / "core/include/plugrad/ops/new.hpp").write_text(
        "#pragma once\nnamespace plugrad {\n// Twice x.\nPLUGRAD_API Tensor twice(const Tensor& x, int times = 1);\n}\n")
    run_python(code, generate, tmp_path, tmp_path / "out.cpp")
    after = (tmp_path / "out.cpp").read_text()
    assert '"twice"' not in before and after.count('.def("twice"') == 2 and "Twice x." in after
    (tmp_path / "core/include/plugrad/ops/new.hpp").write_text(
        "#pragma once\nnamespace plugrad {\n// Twice x.\nPLUGRAD_API Tensor twice(const Tensor& x);\n"
        "PLUGRAD_API Tensor thrice(const Tensor& x);\n}\n")
    bare = run_python(code, generate, tmp_path, tmp_path / "out.cpp", check=False).stderr
    assert "what these functions do: thrice" in bare
    for wrong in ("Tensor odd(const std::map<int, int>& x)", "int odd(const Tensor& x)",
                  "Tensor odd(const Tensor& x, int n = kMany)"):
        header = f"#pragma once\nnamespace plugrad {{\nPLUGRAD_API {wrong};\n}}\n"
        (tmp_path / "core/include/plugrad/ops/new.hpp").write_text(header)
        assert "generate.py" in run_python(code, generate, tmp_path, tmp_path / "out.cpp", check=False).stderr


def test_star_import_leaves_python_alone():
    scope = {}
    exec("from plugrad import *; result = sum([1, 2]), max(1, 2), Tensor, relu", scope)
    assert scope["result"][:2] == (3, 2)
