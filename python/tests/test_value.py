"""Value: micrograd's scalar, by its names."""
import gc
import math
import pickle

import plugrad
import pytest
from plugrad import Device, Value


def test_the_expression_of_micrograds_readme():
    a, b = Value(-4.0), Value(2.0)
    c = a + b
    d = a * b + b**3
    c += c + 1
    c += 1 + c + (-a)
    d += d * 2 + (b + a).relu()
    d += 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    g += 10.0 / f
    assert g.data == pytest.approx(24.70408163265306, rel=1e-14)
    g.backward()
    assert a.grad == pytest.approx(138.83381924198252, rel=1e-14)
    assert b.grad == pytest.approx(645.5772594752186, rel=1e-14)
    assert (c.data, d.data) == (-1, 6)


def test_its_sanity_check():
    x = Value(-4.0)
    z = 2 * x + 2 + x
    q = z.relu() + z * x
    h = (z * z).relu()
    y = h + q + q * x
    y.backward()
    assert y.data == -20
    assert x.grad == 46


@pytest.mark.parametrize("op, a, b", [
    (lambda x: x + 3, 5, 1), (lambda x: 3 + x, 5, 1), (lambda x: x - 3, -1, 1), (lambda x: 3 - x, 1, -1),
    (lambda x: x * 3, 6, 3),
    (lambda x: 3 * x, 6, 3), (lambda x: x / 4, 0.5, 0.25), (lambda x: 4 / x, 2, -1), (lambda x: x**3, 8, 12),
    (lambda x: -x, -2, -1),
    (lambda x: +x, 2, 1), (lambda x: x.relu(), 2, 1), (lambda x: (x - 5).relu(), 0, 0),
    (lambda x: x.exp(), math.e**2, math.e**2),
    (lambda x: x.log(), math.log(2), 0.5), (lambda x: x.tanh(), math.tanh(2), 1 - math.tanh(2)**2)])
def test_ops_and_numbers_on_either_side(op, a, b):
    x = Value(2)
    y = op(x)
    y.backward()
    assert y.data == pytest.approx(a)
    assert x.grad == pytest.approx(b)


def test_numpy_numbers_are_numbers():
    numpy = pytest.importorskip("numpy")
    assert (Value(2) * numpy.float32(3)).data == 6
    assert (numpy.int64(3) + Value(2)).data == 5


def test_backward_adds_and_may_be_called_again():
    a = Value(3)
    b = a * a
    b.backward()
    b.backward()
    assert (a.grad, b.grad) == (12, 2)
    a.zero_grad()
    assert a.grad == 0


def test_in_place_operators_bind_a_new_value():
    a = Value(1)
    before = a
    for change in ("a += 2", "a -= 1", "a *= 6", "a /= 3"):
        scope = {"a": a}
        exec(change, scope)
        a = scope["a"]
    assert (a.data, before.data) == (4, 1)
    a.backward()
    assert before.grad == 2


def test_data_and_grad_are_read_and_written():
    a = Value(1.5)
    assert isinstance(a.data, float) and isinstance(a.grad, float)
    a.data = 4
    a.grad = -2
    assert (a.data, a.grad) == (4, -2)
    with pytest.raises(TypeError):
        a.data = "four"


def test_text():
    assert repr(Value(3.14)) == "Value(data=3.14, grad=0, device=cpu)"
    a = Value(24.70408163265306)
    a.grad = 1e-7
    assert repr(a) == "Value(data=24.70408163265306, grad=1e-07, device=cpu)"


def test_prev_and_op_have_stable_identities():
    a, b = Value(2, device="cpu"), Value(3)
    c = a * b
    d = c + a
    assert a._prev == set() and a._op == ""
    assert c._prev == {a, b} and c._op == "*"
    assert d._prev == {c, a} and d._op == "+"
    product = a * b + 1  # the intermediate value has no Python object
    kept = product._prev
    first = {id(each) for each in kept}
    assert {id(each) for each in product._prev} == first and len(kept) == 2
    assert [x.relu()._op for x in (a,)] == ["ReLU"] and (a**2)._op == "**"
    assert (a + a)._prev == {a}


def test_an_object_lives_on_in_its_graph():
    a = Value(2)
    a.label = "a"
    b = a * 3
    del a
    gc.collect()
    (again,) = [x for x in b._prev if x.label == "a"]
    b.backward()
    assert (again.data, again.grad) == (2, 3)


def test_micrograds_own_way_to_walk_a_graph():
    a, b = Value(2), Value(-3)
    root = (a * b + a).relu() + b
    topo, visited = [], set()

    def build(v):
        if v not in visited:
            visited.add(v)
            for child in v._prev:
                build(child)
            topo.append(v)
    build(root)
    assert len(topo) == 6 and topo[-1] is root and a in topo


def test_label():
    a = Value(1)
    assert a.label == ""
    a.label = "weight"
    assert a.label == "weight"


def test_devices_and_gradients_through_them():
    a = Value(2, device="reference")
    assert a.device == Device("reference:0")
    b = (a.cpu() * 3).to("reference")
    assert (str(b.device), b.data) == ("reference", 6)
    b.backward()
    assert a.grad == 3
    assert a.to(a.device).data == 2
    with pytest.raises(ValueError, match=r"reference:0.*cpu:0|cpu:0.*reference:0"):
        a + Value(1)


@pytest.mark.skipif(Device.is_cuda_available(), reason="a CUDA device is here")
def test_no_cuda_says_so():
    with pytest.raises(RuntimeError, match="CUDA"):
        Value(1).cuda()
    with pytest.raises(RuntimeError, match="CUDA"):
        Value(1, device="cuda")


@pytest.mark.skipif(not Device.is_cuda_available(), reason="no CUDA device")
def test_gradients_flow_through_cuda():
    a = Value(2)
    (a.cuda() * 3).cpu().backward()
    assert a.grad == 3


@pytest.mark.parametrize("wrong", ["2", None, [1], 2j])
def test_other_operands_are_type_errors(wrong):
    with pytest.raises(TypeError):
        Value(1) + wrong
    with pytest.raises(TypeError):
        Value(wrong)


def test_powers_take_numbers_alone():
    with pytest.raises(TypeError):
        Value(2) ** Value(2)


def test_without_recording_there_is_no_graph():
    a = Value(2)
    with plugrad.no_grad():
        b = a * 3
    assert b.data == 6 and b._prev == set()
    with pytest.raises(ValueError):
        b.backward()


def test_pickle_keeps_the_number():
    assert pickle.loads(pickle.dumps(Value(2.5))).data == 2.5


def test_float():
    assert float(Value(2.5)) == 2.5
