"""Tensors: constructors, attributes and methods."""
import array
import copy
import math
import pickle

import plugrad
import pytest
from plugrad import Device, Tensor


def test_numbers_become_f32_and_track_gradients():
    t = Tensor([1, 2])
    assert t.dtype == plugrad.f32 and t.dtype == "f32" and t.requires_grad
    assert t.shape == (2,) and t.shape == [2] and t.tolist() == [1.0, 2.0]
    assert Tensor(3).shape == () and Tensor(3).item() == 3.0 and Tensor(2.5).requires_grad


def test_factories_and_arrays_do_not_track():
    assert not plugrad.zeros((2,)).requires_grad
    assert not plugrad.tensor([1.0]).requires_grad and plugrad.tensor([1.0], requires_grad=True).requires_grad
    assert not Tensor(array.array("d", [1, 2])).requires_grad
    assert Tensor(array.array("d", [1, 2]), requires_grad=True).requires_grad
    assert not Tensor([1, 2], requires_grad=False).requires_grad
    assert not Tensor(Tensor([1.0])).requires_grad


def test_nested_lists_and_tuples():
    t = Tensor([[1, 2, 3], (4, 5, 6)])
    assert t.shape == (2, 3) and t.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert Tensor([]).shape == (0,) and Tensor([[], []]).shape == (2, 0) and Tensor([[], []]).tolist() == [[], []]
    assert Tensor(range(3)).tolist() == [0, 1, 2] and Tensor(x / 2 for x in range(3)).tolist() == [0, 0.5, 1]
    assert Tensor([[[1]]], shape=(1,)).shape == [1]


def test_shape():
    assert Tensor([1, 2, 3, 4, 5, 6], (2, 3)).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert Tensor([1, 2, 3, 4], shape=[2, -1]).shape == (2, 2)
    with pytest.raises(ValueError, match=r"\(3,?\).*\(2, 2\)|3 elements.*\(2, 2\)"):
        Tensor([1, 2, 3], shape=(2, 2))


@pytest.mark.parametrize("ragged", [[[1, 2], [3]], [[1], 2], [1, [2]], [[[1]], [[1, 2]]]])
def test_ragged_lists(ragged):
    with pytest.raises(ValueError, match="no common shape"):
        Tensor(ragged)


@pytest.mark.parametrize("wrong", [None, "text", [None], [["a"]], object(), {1: 2}.values])
def test_what_is_no_number(wrong):
    with pytest.raises(TypeError):
        Tensor(wrong)


def test_lists_too_deep():
    deep = 1
    for _ in range(9):
        deep = [deep]
    with pytest.raises(ValueError, match="8"):
        Tensor(deep)


def test_dtypes():
    assert Tensor([True, False]).dtype == plugrad.bool_ and not Tensor([True]).requires_grad
    assert Tensor([1, 2], dtype="i64").tolist() == [1, 2] and not Tensor([1], dtype=plugrad.i64).requires_grad
    assert Tensor([0, 2], dtype=bool).tolist() == [False, True]
    assert Tensor([1], dtype=int).dtype == "int64" and Tensor([1], dtype=float).dtype == plugrad.float32
    assert Tensor([0.1], dtype="float64").tolist() == [0.1]
    assert Tensor([2**60], dtype="i64").item() == 2**60
    with pytest.raises(ValueError, match="not a whole number"):
        Tensor([1.5], dtype="i64")
    assert Tensor([1], dtype="complex64").dtype == "c64"
    with pytest.raises(ValueError, match="complex256"):
        Tensor([1], dtype="complex256")
    assert [str(d) for d in (plugrad.f32, plugrad.f64, plugrad.i64, plugrad.bool_)] == ["f32", "f64", "i64", "bool"]
    assert pickle.loads(pickle.dumps(plugrad.f64)) == plugrad.f64 and len({plugrad.f32, plugrad.float32}) == 1
    assert plugrad.f64.itemsize == 8 and plugrad.f32.is_floating_point and not plugrad.i64.is_floating_point


def test_numpys_and_torchs_dtypes_are_understood():
    numpy = pytest.importorskip("numpy")
    for dtype in (numpy.float64, numpy.dtype("float64"), numpy.dtype("f8")):
        assert Tensor([1], dtype=dtype).dtype == "f64"


@pytest.mark.parametrize("code, dtype",
                         [("f", "f32"), ("d", "f64"), ("q", "i64"), ("b", "i8"), ("B", "u8"), ("h", "i16"),
                          ("H", "i64"), ("i", "i32")])
def test_buffers_are_copied(code, dtype):
    source = array.array(code, [1, 2, 3])
    t = Tensor(source)
    source[0] = 9
    assert t.dtype == dtype and t.tolist() == [1, 2, 3]


def test_strides_and_contiguity():
    t = Tensor([[1, 2, 3], [4, 5, 6]])
    assert t.strides == (3, 1) and t.strides == [3, 1] and t.is_contiguous()
    u = t.transpose(0, 1)
    assert u.shape == [3, 2] and u.strides == (1, 3) and not u.is_contiguous()
    assert u.contiguous().strides == (2, 1) and u.contiguous().tolist() == u.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert t.contiguous().is_same(t) and t.T.tolist() == u.tolist()
    assert t.transpose(dim0=1, dim1=0).shape == (3, 2)
    with pytest.raises(ValueError, match="axis|dim"):
        t.transpose(0, 2)


def test_sizes_are_tuples():
    shape = Tensor([[1, 2, 3]]).shape
    assert isinstance(shape, tuple) and repr(shape) == "(1, 3)" and hash(shape) == hash((1, 3)) and shape != [1]
    assert shape != (3, 1)
    assert [*shape, 5] == [1, 3, 5] and shape[1] == 3 and pickle.loads(pickle.dumps(shape)) == (1, 3)


def test_slice():
    t = Tensor([[0, 1, 2, 3], [4, 5, 6, 7]])
    assert t.slice(1, 1, 3).tolist() == [[1, 2], [5, 6]]
    assert t.slice(dim=1, start=0, end=4, step=2).tolist() == [[0, 2], [4, 6]]
    assert t.slice(0, -1, 2).tolist() == [[4, 5, 6, 7]] and t.slice(1, 3, -5, -1).tolist()[0] == [3, 2, 1, 0]
    with pytest.raises(ValueError, match="step 0"):
        t.slice(0, 0, 1, 0)
    with pytest.raises(ValueError):
        t.slice(2, 0, 1)


def test_reshape():
    t = Tensor([1, 2, 3, 4, 5, 6])
    assert t.reshape(2, 3).shape == t.reshape((2, 3)).shape == t.reshape([2, -1]).shape == (2, 3)
    with pytest.raises(ValueError, match=r"\(6,\).*6.*\(4, 2\).*8"):
        t.reshape(4, 2)
    with pytest.raises(TypeError):
        t.reshape(1.5)


def test_item():
    assert Tensor([[2.5]]).item() == 2.5 and isinstance(Tensor([1], dtype="i64").item(), int)
    assert Tensor([True]).item() is True
    assert float(Tensor([2.5])) == 2.5 and int(Tensor([2.5])) == 2 and bool(Tensor([0.0])) is False
    assert [10, 11, 12][Tensor([1], dtype="i64")] == 11
    with pytest.raises(ValueError, match="one element"):
        Tensor([1, 2]).item()
    with pytest.raises(ValueError):
        bool(Tensor([1, 2]))
    with pytest.raises(TypeError):
        [1][Tensor([0.0])]


def test_gradients():
    x = Tensor([-1.0, 2.0, 3.0])
    assert x.grad is None
    y = (x.relu() * x).sum()
    y.backward()
    assert x.grad.tolist() == [0, 4, 6] and not x.grad.requires_grad
    x.grad = plugrad.ones((3,))
    assert x.grad.tolist() == [1, 1, 1]
    x.grad = None
    assert x.grad is None and x.is_leaf and not y.is_leaf
    with pytest.raises(ValueError, match="shape"):
        x.grad = plugrad.ones((2,))


def test_backward_needs_one_element_or_a_gradient():
    x = Tensor([1.0, 2.0])
    with pytest.raises(ValueError, match=r"\(2,\)"):
        (x * x).backward()
    (x * x).backward(plugrad.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2, 40]
    y = (x**2).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(ValueError, match="freed"):
        y.backward()


def test_requires_grad():
    t = plugrad.zeros((2,))
    t.requires_grad = True
    assert t.requires_grad and t.requires_grad_(False) is t and not t.requires_grad
    with pytest.raises(ValueError):
        Tensor([1], dtype="i64").requires_grad = True
    assert not Tensor([1.0]).detach().requires_grad
    y = Tensor([1.0]) * 2
    y.retain_grad()
    y.sum().backward()
    assert y.grad.tolist() == [1]


def test_to():
    t = Tensor([[1.0, 2.0]])
    r = t.to("reference")
    assert r.device == Device("reference") and str(r.device) == "reference" and t.cpu().is_same(t)
    (r * 3).sum().backward()
    assert t.grad.tolist() == [[3, 3]] and t.grad.device == "cpu"
    assert t.to("f64").dtype == "f64" and t.double().dtype == "f64" and t.long().dtype == "i64" and t.bool().dtype == "bool"
    assert t.float().is_same(t) and t.to(plugrad.f64).dtype == plugrad.f64
    assert t.to(Device("reference")).device.type == "reference"
    with pytest.raises(ValueError, match=r"cpu:0.*reference:0"):
        t + r
    with pytest.raises(RuntimeError, match="npu"):
        t.to("npu")


def test_dtypes_are_promoted():
    assert (Tensor([1.0]) + Tensor([1.0], dtype="f64")).dtype == "f64"
    assert (plugrad.tensor([1]) * 1.5).dtype == "f32" and (plugrad.tensor([1]) * 2).dtype == "i64"
    assert (plugrad.tensor([3]) / 2).tolist() == [1.5] and (plugrad.tensor([3]) ** 2).dtype == "i64"
    assert plugrad.tensor([True, False]).mean().item() == 0.5 and (plugrad.tensor([True]) + 1).dtype == "i64"


def test_whole_numbers_are_i64_unless_the_dtype_is_given():
    assert plugrad.tensor([[1, 2]]).dtype == "i64" and plugrad.tensor(3).dtype == "i64"
    assert plugrad.tensor([1, 2.5]).dtype == "f32" and plugrad.tensor([True]).dtype == "bool"
    assert plugrad.tensor([1, 2], dtype="f32").dtype == "f32" and Tensor([1, 2]).dtype == "f32"
    assert plugrad.arange(3).dtype == "i64" and plugrad.arange(0, 3, 0.5).dtype == "f32"
    assert plugrad.full((2,), 7).dtype == "i64" and plugrad.full((2,), 0.5).dtype == "f32"
    assert plugrad.zeros(2).dtype == "f32"


def test_shapes_that_do_not_fit_name_both():
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(2, 2\)"):
        plugrad.zeros((2, 3)) + plugrad.zeros((2, 2))
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(2, 3\)"):
        plugrad.zeros((2, 3)) @ plugrad.zeros((2, 3))


def test_broadcasting():
    """(2, 2) + (2,) broadcasts as in NumPy."""
    a, b = Tensor([[1, 2], [3, 4]]), Tensor([10, 20])
    c = a + b
    assert c.tolist() == [[11, 22], [13, 24]]
    c.sum().backward()
    assert b.grad.tolist() == [2, 2] and a.grad.tolist() == [[1, 1], [1, 1]]


def test_in_place():
    t = plugrad.zeros((2, 2))
    assert t.fill_(3) is t and t.tolist() == [[3, 3], [3, 3]]
    assert t.copy_([1, 2]).tolist() == [[1, 2], [1, 2]] and t.add_(t, alpha=2).tolist() == [[3, 6], [3, 6]]
    assert t.mul_(2).tolist()[0] == [6, 12]
    w = Tensor([1.0])
    with pytest.raises(ValueError, match="NoGrad|recording"):
        w.fill_(2)
    with plugrad.no_grad():
        w.fill_(2)
    assert w.item() == 2


def test_text():
    assert repr(Tensor([1, 2.5])) == "Tensor([1.  2.5], requires_grad=True)"
    assert repr(plugrad.zeros((2, 1), dtype="i64")) == "Tensor([[0]\n        [0]], dtype=i64)"
    assert repr(plugrad.ones((), device="reference")) == "Tensor(1.0, device=reference)"
    assert repr(plugrad.zeros((0, 3))) == "Tensor([], shape=(0, 3))"


def test_hash_is_by_identity():
    a = Tensor([1.0])
    assert hash(a) == hash(a) and len({a, a, Tensor([1.0])}) == 2


def test_iteration_and_length():
    t = Tensor([[1, 2], [3, 4]])
    assert len(t) == 2 and [row.tolist() for row in t] == [[1, 2], [3, 4]]
    for scalar_call in (len, list):
        with pytest.raises(TypeError):
            scalar_call(Tensor(1.0))


def test_pickle():
    for t in (Tensor([[1.5, 2]]), plugrad.zeros((0, 2)), Tensor([True]), Tensor([2**60], dtype="i64"),
              Tensor([1.0], device="reference"),
              plugrad.arange(6).reshape(2, 3).T):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(t, protocol))
            assert (again.tolist(), again.shape, again.dtype) == (t.tolist(), t.shape, t.dtype)
            assert (again.device, again.requires_grad) == (t.device, t.requires_grad)


def test_numbers_are_kept_as_they_are():
    assert Tensor([True, 2.5]).tolist() == [1, 2.5] and Tensor([True, 2]).dtype == "f32"
    assert Tensor([16777217], dtype="f32").item() == 16777216 and Tensor([16777217], dtype="i64").item() == 16777217
    for wrong in ([16777217], 10**30, [0.5, 2**24 + 1]):
        with pytest.raises(ValueError, match="give a dtype"):
            Tensor(wrong)
    with pytest.raises(ValueError, match="18446744073709551615 is out of the range of i64"):
        Tensor(array.array("Q", [2**64 - 1]))
    assert Tensor(array.array("Q", [2**63 - 1])).item() == 2**63 - 1 and Tensor(array.array("l", [-1])).item() == -1
    for wrong in ([1.5], [math.nan], [1e30]):
        with pytest.raises(ValueError, match="whole number"):
            plugrad.tensor(array.array("d", wrong), dtype="i64")
    assert plugrad.tensor(array.array("d", [2.0]), dtype="i64").tolist() == [2]


def test_halves_of_other_libraries_are_kept():
    numpy = pytest.importorskip("numpy")

    class Foreign:
        def __dlpack__(self, **named):
            return numpy.array([0.5], dtype="float16").__dlpack__(**named)

        def __dlpack_device__(self):
            return (1, 0)

        def __array__(self, dtype=None, copy=None):
            return numpy.array([0.5], dtype="float16")
    assert Tensor(Foreign()).dtype == "f16" and Tensor(Foreign()).tolist() == [0.5]


def test_rows_by_masks_and_from_the_end():
    x = plugrad.tensor([[1.0], [2.0], [3.0]])
    for mask in ([True, False, True], plugrad.tensor([True, False, True])):
        assert plugrad.data.rows(x, mask).tolist() == [[1], [3]]
    assert plugrad.data.rows(x, [-1, 0]).tolist() == [[3], [1]]
    with pytest.raises(IndexError, match="mask"):
        plugrad.data.rows(x, [True, False])


def test_freezing_keeps_the_gradient():
    x = Tensor([1.0, 2.0])
    y = (x * x).sum()
    x.requires_grad = False
    assert not (x * 2).requires_grad
    x.requires_grad = True
    y.backward()
    assert x.requires_grad_(False).grad.tolist() == [2, 4] and (x.requires_grad_() * 2).requires_grad_(True).requires_grad
    with pytest.raises(ValueError, match="only leaves"):
        (x * 2).requires_grad_(False)


def test_names_of_pytorch():
    x = plugrad.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    assert x.size == 3 and x.size() == (1, 3) and x.size(-1) == 3 and x.dim() == x.ndim == 2
    assert x.t().shape == (3, 1) and x.to(device="reference", dtype="f64").device == "reference"
    assert x.to("f64").dtype == x.to("cpu", plugrad.f64).dtype == x.astype("f64").dtype == "f64"
    assert x.to(x).is_same(x) and not x.to(x, copy=True).is_same(x) and x.to(plugrad.ones(1, dtype="f64")).dtype == "f64"
    x.data -= 1
    x.data = x.data * 2
    assert x.tolist() == [[0, 2, 4]] and x.is_leaf and x.requires_grad and not x.data.requires_grad
    with pytest.raises(ValueError, match="shape and dtype must be equal"):
        x.data = plugrad.ones(2)
    with pytest.raises(ValueError, match="two axes"):
        plugrad.ones(1, 1, 1).t()


def test_formats():
    assert f"{Tensor(1.23456):.3f}" == "1.235" and f"{plugrad.tensor([7], dtype='i64'):03d}" == "007"
    assert f"{Tensor(1.5)}" == "1.5" and f"{Tensor([1.5])}" == str(Tensor([1.5]))
    with pytest.raises(TypeError, match=r"\[format\].*\(2,\)"):
        f"{Tensor([1, 2]):.3f}"


def test_copies():
    x = Tensor([1.0])
    assert copy.copy(x).is_same(x) and not copy.deepcopy(x).is_same(x)
    for kind in (x, Tensor([1.0], requires_grad=True), plugrad.ones(1)):
        again = copy.deepcopy(kind)
        assert (again._is_parameter, again.requires_grad) == (kind._is_parameter, kind.requires_grad)
    x.grad = plugrad.tensor([2.0])
    again = copy.deepcopy([x, x])
    assert again[0].is_same(again[1]) and again[0].grad.tolist() == [2] and not again[0].grad.is_same(x.grad)


def test_i32_and_bf16():
    whole = Tensor([[1, -2], [3, 2**31 - 1]], dtype="int32")
    assert whole.dtype == plugrad.i32 and whole.tolist() == [[1, -2], [3, 2**31 - 1]] and whole.sum().dtype == plugrad.i64
    assert (whole + whole).tolist() == [[2, -4], [6, -2]]
    with pytest.raises(ValueError, match="out of the range of i32"):
        Tensor([2**31], dtype="i32")
    half = Tensor([1.0, 1 / 3, -2.5], dtype=plugrad.bfloat16)
    assert half.dtype == "bf16" and half.tolist() == [1.0, 0.333984375, -2.5]
    assert (half * 2).tolist() == [2.0, 0.66796875, -5.0] and half.sum().item() == -1.1640625
    x = Tensor([0.5, -1.0], dtype="bf16")
    x.requires_grad = True
    (x.erf() * x).sum().backward()
    assert x.grad.dtype == "bf16" and abs(x.grad.tolist()[0] - 0.96) < 0.02
    with pytest.raises(BufferError, match="no format for this dtype"):
        memoryview(half)
