"""The search for NaN, derivatives of functions, and recorded writes."""
import plugrad
import pytest
from plugrad import Function


def leaf(*numbers, dtype="f64"):
    return plugrad.tensor(list(numbers), dtype=dtype, requires_grad=True)


# --- NaN.

def test_detect_anomaly_names_op_and_line():
    x = leaf(0.0, 1.0)
    with plugrad.detect_anomaly(forward=False):
        y = x.sqrt() * 0  # this line
        with pytest.raises(ValueError, match=r"(?s)gradient of sqrt.*operands \(2,\).*this line"):
            y.sum().backward()
    with plugrad.detect_anomaly(), pytest.raises(ValueError, match="log made NaN"):
        (-leaf(1.0)).log()
    assert (-leaf(1.0)).log().isnan().item()


def test_detect_anomaly_decorates():
    @plugrad.detect_anomaly()
    def compute(x):
        return x.log()
    with pytest.raises(ValueError, match="log made NaN"):
        compute(leaf(-1.0))


# --- Derivatives of functions.

def test_products():
    x, y = plugrad.tensor([2.0, 3.0]), plugrad.tensor([5.0, 7.0])
    value, product = plugrad.vjp(lambda a: (a * a).sum(), x)
    assert value.item() == 13 and product.tolist() == [4, 6]
    values, products = plugrad.vjp(lambda a, b: (a * b, a), (x, y), (x, y))
    assert len(values) == 2 and [each.tolist() for each in products] == [[15, 28], [4, 9]]
    value, product = plugrad.jvp(lambda a: a * a, x, y)
    assert value.tolist() == [4, 9] and product.tolist() == [20, 42]
    assert plugrad.jvp(lambda a: a * a, plugrad.tensor(3.0))[1].item() == 6
    assert plugrad.jvp(lambda a, b: (a * b,), (x, y), (y, x))[1][0].tolist() == [29, 58]


def test_matrices():
    x, y = plugrad.tensor([2.0, 3.0]), plugrad.tensor([5.0, 7.0])
    assert plugrad.jacobian(lambda a: a * a, x).tolist() == [[4, 0], [0, 6]]
    assert [each.tolist() for each in plugrad.jacobian(lambda a, b: (a * b).sum(), (x, y))] == [[5, 7], [2, 3]]
    rows = plugrad.jacobian(lambda a, b: (a * b, b.sum()), (x, y))
    assert rows[0][1].tolist() == [[2, 0], [0, 3]] and rows[1][0].tolist() == [0, 0]
    assert plugrad.hessian(lambda a: (a * a * a).sum(), x).tolist() == [[12, 0], [0, 18]]
    assert plugrad.hessian(lambda a, b: (a * b).sum(), (x, y))[0][1].tolist() == [[1, 0], [0, 1]]
    z = leaf(2.0)
    (slope,) = plugrad.grad(plugrad.hessian(lambda a: (a**3).sum(), z, create_graph=True).sum(), z)
    assert slope.tolist() == [6]


def test_gradcheck_reports():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 3
    x = leaf(1.0, 2.0)
    with pytest.raises(ValueError, match=r"result 0 at \(0,\) for input 0 at \(0,\) is 3, but differences say 2"):
        plugrad.gradcheck(Wrong.apply, x)
    assert not plugrad.gradcheck(Wrong.apply, (x,), raise_exception=False)
    with pytest.raises(TypeError, match="gradcheck"):
        plugrad.gradcheck(lambda a: [a, 3], x)
    with pytest.raises(KeyError):
        plugrad.gradcheck(lambda a: {}["name"], x)
    with pytest.raises(ValueError, match="requires_grad"):
        plugrad.gradcheck(Wrong.apply, plugrad.tensor([1.0]))


# --- Writes that are recorded.

def test_items_that_are_set_are_in_the_graph():
    w = leaf(1.0, 2.0, 3.0)
    rows = plugrad.zeros((2, 3), dtype="f64")
    for i in range(2):
        rows[i] = w * (i + 1)
    rows[0, 1] = 5
    rows[:, ::2] = w[1] * w[1]
    assert rows.requires_grad
    (rows * rows).sum().backward()
    # rows: [w1^2, 5, w1^2], [w1^2, 2 w1, w1^2]
    assert w.grad.tolist() == [0, 4 * 4 * 8 + 8 * 2, 0]


def test_whole_tensors_that_are_written_are_in_the_graph():
    w = leaf(1.0, 2.0)
    a = plugrad.zeros((2,), dtype="f64")
    a.copy_(w)
    a.add_(w, alpha=3)
    a.mul_(2)
    a[...] = a * 3
    a.sum().backward()
    assert a.tolist() == [24, 48] and w.grad.tolist() == [24, 24]


def test_writes_that_cannot_be_recorded_are_refused():
    w = leaf(1.0, 2.0)
    a = plugrad.zeros((2, 2), dtype="f64")
    row = a[0]
    with pytest.raises(ValueError, match="share the memory"):
        row.copy_(w)
    with pytest.raises(ValueError, match="share the memory"):
        a[1] = w
    with pytest.raises(ValueError, match="leaf"):
        w[0] = 1
    with plugrad.no_grad():
        a[1] = w
        w[0] = 4
    assert row.tolist() == [0, 0] and a.tolist() == [[0, 0], [1, 2]] and w.tolist() == [4, 2]


def test_frozen_leaves_stay_in_graphs():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    x.requires_grad = False
    x.requires_grad = True
    y.backward()
    assert x.grad.tolist() == [2, 4]
    x.requires_grad_(False)
    assert x.grad.tolist() == [2, 4]
    assert (x.requires_grad_() * 2).requires_grad_(True).requires_grad


def test_piecewise_linear_functions_have_second_derivatives():
    x = leaf(-1.0, 2.0)
    (first,) = plugrad.grad([x.relu().sum()], [x], create_graph=True)
    assert plugrad.grad([first.sum()], [x])[0].tolist() == [0, 0]
    y = (x * 2).sum()
    y.backward()
    y.backward()  # the graph saved no values, so a second pass is possible
    assert x.grad.tolist() == [4, 4]
