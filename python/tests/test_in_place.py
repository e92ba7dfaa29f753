"""Methods that write into their tensor: their results, recording, and refusals."""
import plugrad
import pytest
from plugrad import Tensor, no_grad

X, Y = [[0.5, -1.5], [2.0, 0.25]], [[1.5, 0.5], [-2.0, 3.0]]
MASK, INDEX = [[True, False], [False, True]], [1]

# (method, function from a library's tensor function to the arguments)
CALLS = [
    *((name, lambda t: ()) for name in
      """abs atan ceil cos cosh deg2rad exp exp2 expm1 floor frac neg rad2deg reciprocal relu round sigmoid sign sin sinh
      square tan tanh trunc tril triu logical_not asinh erf""".split()),
    *((name, lambda t: (t(Y),)) for name in
      "add sub mul div atan2 copysign fmod remainder floor_divide hypot heaviside lt le gt ge eq ne xlogy".split()),
    *((name, lambda t: (2,)) for name in "add sub mul div pow fmod remainder floor_divide lt eq".split()),
    ("clamp", lambda t: (0, 1)), ("clamp", lambda t: (t(Y),)), ("masked_fill", lambda t: (t(MASK), 7)),
    ("index_fill", lambda t: (1, t(INDEX), 7)), ("index_add", lambda t: (0, t(INDEX), t([[1.0, 2.0]]))),
    ("index_copy", lambda t: (0, t(INDEX), t([[1.0, 2.0]]))), ("scatter", lambda t: (0, t([[1, 0]]), t([[5.0, 6.0]]))),
    ("scatter_add", lambda t: (0, t([[1, 1]]), t([[5.0, 6.0]]))), ("cumsum", lambda t: (0,)), ("cumprod", lambda t: (1,)),
    ("lerp", lambda t: (t(Y), 0.25)), ("addcmul", lambda t: (t(Y), t(Y))), ("addcdiv", lambda t: (t(Y), t(Y))),
    ("nan_to_num", lambda t: ()), ("clamp_min", lambda t: (0.5,)), ("clamp_max", lambda t: (t(Y),)),
    ("digamma", lambda t: ()), ("lgamma", lambda t: ()), ("sinc", lambda t: ()), ("erfc", lambda t: ()),
    ("ldexp", lambda t: (t(Y),)), ("index_reduce", lambda t: (0, t(INDEX), t([[1.0, 2.0]]), "prod"))]
NAMES = [f"{i}-{name}" for i, (name, _) in enumerate(CALLS)]


def near(x):
    if x.ndim == 1:
        return pytest.approx(x.tolist(), rel=1e-5, abs=2e-6, nan_ok=True)
    return [pytest.approx(row, rel=1e-5, abs=2e-6, nan_ok=True) for row in x.tolist()]


@pytest.mark.parametrize("name, arguments", CALLS, ids=NAMES)
def test_the_same_as_the_function(name, arguments):
    given = arguments(plugrad.tensor)
    expected = getattr(plugrad.tensor(X), name)(*given).float()
    x = plugrad.tensor(X)
    view, address = x[0], x.data_ptr()
    assert getattr(x, f"{name}_")(*given) is x and x.tolist() == near(expected)
    assert view.tolist() == near(x[0]) and x.data_ptr() == address


@pytest.mark.parametrize("name, arguments", CALLS, ids=NAMES)
def test_the_gradient_of_a_result_in_place(name, arguments):
    given = arguments(plugrad.tensor)
    grads = []
    for method in (name, f"{name}_"):
        x = plugrad.tensor(X, requires_grad=True)
        y = x * 1.25
        z = getattr(y, method)(*given).float()
        (z * z).sum().backward() if z.requires_grad else None
        grads.append(x.grad.tolist() if x.grad is not None else [[0.0, 0.0], [0.0, 0.0]])
    assert grads[1] == [pytest.approx(row, nan_ok=True) for row in grads[0]]


@pytest.mark.parametrize("name, arguments", CALLS, ids=NAMES)
def test_the_same_as_in_pytorch(name, arguments):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x, theirs = plugrad.tensor(X), torch.tensor(X)
    getattr(x, f"{name}_")(*arguments(plugrad.tensor))
    getattr(theirs, f"{name}_")(*arguments(torch.tensor))
    assert x.tolist() == near(theirs)


def test_what_records_another_tensor():
    w = Tensor([3.0, 4.0], requires_grad=True)
    x = plugrad.tensor([1.0, 2.0])
    x.mul_(w)
    (x * x).sum().backward()
    assert x.tolist() == [3, 8] and w.grad.tolist() == [6, 32]


@pytest.mark.parametrize("write", [lambda x: x.relu_(), lambda x: x.mul_(x), lambda x: x.zero_(), lambda x: x.normal_()])
def test_a_leaf_is_written_under_no_grad_only(write):
    leaf = Tensor([1.0, -2.0], requires_grad=True)
    with pytest.raises(ValueError, match="a leaf that requires a gradient"):
        write(leaf)
    with no_grad():
        assert write(leaf) is leaf
    assert leaf.requires_grad and leaf.is_leaf


def test_a_recorded_write_where_others_share_the_memory():
    x = Tensor([[1.0, 2.0]], requires_grad=True)
    y = x * 2
    with pytest.raises(ValueError, match=r"\[exp_\] views or other tensors share"):
        y[0].exp_()


@pytest.mark.parametrize("write, message", [
    (lambda: plugrad.tensor([1, 2]).div_(2), r"\[div_\] the result is f32, which a tensor of i64 cannot hold"),
    (lambda: plugrad.tensor([True]).add_(2), r"\[add_\] the result is i64, which a tensor of bool cannot hold"),
    (lambda: plugrad.ones(2).mul_(plugrad.ones(3, 2)), r"\[mul_\] the result has shape \(3, 2\), and this tensor \(2,\)"),
    (lambda: plugrad.tensor([1, 2]).uniform_(), r"\[uniform_\] a tensor of i64 holds no fractions")])
def test_results_that_do_not_fit(write, message):
    with pytest.raises(ValueError, match=message):
        write()


def test_names_of_pytorch():
    x = plugrad.tensor([4.0, 9.0])
    assert x.sqrt_().multiply_(2).subtract_(plugrad.tensor([1.0, 1.0]), alpha=3).clip_(2).tolist() == [2, 3]
    assert x.divide_(2, rounding_mode="floor").tolist() == [1, 1]
    assert x.zero_().tolist() == [0, 0] and x.fill_(3).add_(x, alpha=2).tolist() == [9, 9]


def test_random_elements():
    plugrad.manual_seed(3)
    x = plugrad.zeros(10_000)
    assert x.uniform_(2, 3) is x and 2 <= x.min().item() < 2.01 and 2.99 < x.max().item() <= 3
    assert abs(x.normal_(5, 2).mean().item() - 5) < 0.1 and abs(x.std().item() - 2) < 0.1
    assert abs(x.exponential_(4).mean().item() - 0.25) < 0.02
    assert abs(x.bernoulli_(0.25).mean().item() - 0.25) < 0.02 and set(x.tolist()) == {0.0, 1.0}
