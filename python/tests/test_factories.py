"""Functions that make tensors: with a gradient, from rows of other libraries, and with PyTorch's names."""
import plugrad
import pytest
from plugrad import Tensor, nn

LIKE = plugrad.ones(2, 3)
FACTORIES = {
    "zeros": lambda **more: plugrad.zeros((2, 3), **more), "zeros of sizes": lambda **more: plugrad.zeros(2, 3, **more),
    "ones": lambda **more: plugrad.ones(size=(2, 3), **more), "empty": lambda **more: plugrad.empty(2, 3, **more),
    "full": lambda **more: plugrad.full((2, 3), 1.5, **more),
    "full of sizes": lambda **more: plugrad.full(2, 3, fill_value=1.5, **more),
    "rand": lambda **more: plugrad.rand((2, 3), **more), "rand of sizes": lambda **more: plugrad.rand(2, 3, **more),
    "randn": lambda **more: plugrad.randn(2, 3, **more), "normal": lambda **more: plugrad.normal(0, 1, size=(2, 3), **more),
    "randint": lambda **more: plugrad.randint(0, 9, (2, 3), dtype="f32", **more),
    "arange": lambda **more: plugrad.arange(3.0, **more), "arange to": lambda **more: plugrad.arange(1, 2, 0.5, **more),
    "eye": lambda **more: plugrad.eye(3, **more), "linspace": lambda **more: plugrad.linspace(0, 1, 5, **more),
    "logspace": lambda **more: plugrad.logspace(0, 1, 5, **more), "scalar": lambda **more: plugrad.scalar(2.5, **more),
    "zeros_like": lambda **more: plugrad.zeros_like(LIKE, **more),
    "ones_like": lambda **more: plugrad.ones_like(LIKE, **more),
    "full_like": lambda **more: plugrad.full_like(LIKE, 2, **more),
    "empty_like": lambda **more: plugrad.empty_like(LIKE, **more),
    "rand_like": lambda **more: plugrad.rand_like(LIKE, **more),
    "randn_like": lambda **more: plugrad.randn_like(LIKE, **more), "tensor": lambda **more: plugrad.tensor([1.0], **more)}


@pytest.mark.parametrize("make", FACTORIES.values(), ids=FACTORIES)
def test_requires_grad(make):
    assert not make().requires_grad and not make(requires_grad=False).requires_grad
    x = make(requires_grad=True)
    (x * 2).sum().backward()
    assert x.is_leaf and x.grad.tolist() == (x.detach() * 0 + 2).tolist()
    module = nn.Module()
    module.weight = make(requires_grad=True)
    assert [name for name, _ in module.named_parameters()] == ["weight"]


@pytest.mark.parametrize("make", [lambda: plugrad.arange(3, requires_grad=True),
                                  lambda: plugrad.full((2,), 7, requires_grad=True),
                                  lambda: plugrad.zeros(2, dtype="i64", requires_grad=True),
                                  lambda: plugrad.randint(3, (2,), requires_grad=True),
                                  lambda: plugrad.ones_like(plugrad.tensor([1]), requires_grad=True)])
def test_integers_have_no_gradient(make):
    with pytest.raises(ValueError, match="a tensor of i64 has no gradient: expected a floating or complex dtype"):
        make()


def test_rows_of_arrays_and_tensors():
    numpy = pytest.importorskip("numpy", reason="NumPy is not installed")
    rows = [numpy.array([1.0, 2.0]), numpy.array([3.0, 4.0])]
    for make in (Tensor, plugrad.tensor):
        made = make(rows)
        assert made.tolist() == [[1, 2], [3, 4]] and made.dtype == "f64" and not made.requires_grad
        assert make([[rows[0]], [rows[1]]]).shape == (2, 1, 2)
        assert make([plugrad.tensor([1, 2]), plugrad.tensor([3, 4])]).dtype == "i64"
        assert make([plugrad.arange(2)], dtype="f32").tolist() == [[0.0, 1.0]]
    with pytest.raises(ValueError, match=r"\[stack\] shapes \(2,\) and \(1,\) differ"):
        Tensor([rows[0], rows[1][:1]])
    assert plugrad.tensor([numpy.float64(1.5), numpy.float64(2)]).dtype == "f32"


@pytest.mark.parametrize("dtype, ours", [("int32", "i32"), ("float64", "f64"), ("float16", "f16"), ("bool", "bool"),
                                         ("uint8", "u8"), ("int64", "i64")])
def test_tensors_of_pytorch_keep_their_dtype(dtype, ours):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    theirs = torch.tensor([1.5, 0.0]).to(getattr(torch, dtype))
    assert plugrad.tensor(theirs).dtype == ours and plugrad.tensor(theirs).tolist() == theirs.tolist()


def test_where_with_two_numbers():
    mask = plugrad.tensor([True, False])
    for numbers, dtype, elements in [((1.0, 0), "f32", [1, 0]), ((2, 3), "i64", [2, 3]), ((True, False), "bool", [1, 0])]:
        made = plugrad.where(mask, *numbers)
        assert made.dtype == dtype and made.tolist() == elements


def test_casts_and_sizes_by_pytorchs_names():
    x = plugrad.tensor([[1.5, 2.5]])
    for method, dtype in [("half", "f16"), ("bfloat16", "bf16"), ("int", "i32"), ("short", "i16"), ("char", "i8"),
                          ("byte", "u8")]:
        assert getattr(x, method)().dtype == dtype
    assert (x.ndimension(), x.stride(), x.nelement(), x.element_size(), x.itemsize, x.nbytes) == (2, (2, 1), 2, 4, 4, 8)
    assert x.is_floating_point() and not x.int().is_floating_point()
    assert plugrad.is_tensor(x) and not plugrad.is_tensor([1.5]) and plugrad.numel(x) == 2
    assert plugrad.as_tensor(x) is x and plugrad.as_tensor([1]).dtype == "i64"
    assert plugrad.as_tensor(x, dtype="f64").dtype == "f64"
    assert (plugrad.long, plugrad.double, plugrad.half, plugrad.int, plugrad.short) == ("i64", "f64", "f16", "i32", "i16")
    assert plugrad.zeros(2, dtype=plugrad.float).dtype == "f32"
