"""Private ops of a plugin, called by name."""

import struct
from pathlib import Path

import pytest

import plugrad

PLUGIN = Path(__file__).resolve().parents[2] / "build/tests/private/libplugrad-backend-own.so"


@pytest.fixture(scope="module")
def own():
    if not PLUGIN.exists():
        pytest.skip(f"{PLUGIN.name} is not built: build the tests first")
    plugrad.load_plugin(str(PLUGIN))
    return plugrad.Device("own")


def scale_add(a, b, scale, gradient=None):
    attributes = struct.pack("If", 0, scale)
    return plugrad.private_op("scale_add", [a, b], [(a.shape, "f32")], attributes=attributes, gradient=gradient)[0]


def test_ops_are_listed(own):
    names = [each["name"] for each in plugrad.private_ops(own)]
    assert names == ["scale_add", "split_halves", "fails"]
    assert plugrad.private_ops("reference") == []


def test_ops_run_by_name(own):
    a = plugrad.tensor([1.0, 2.0, 3.0, 4.0], device=own)
    assert scale_add(a, a, 2).tolist() == [3.0, 6.0, 9.0, 12.0]
    first, second = plugrad.private_op("split_halves", [a], [((2,), "f32"), ((2,), plugrad.f32)])
    assert first.tolist() == [1.0, 2.0] and second.tolist() == [3.0, 4.0]


def test_gradients_are_the_callers(own):
    def gradient(grads, inputs, results):
        assert len(inputs) == 2 and len(results) == 1
        return [scale_add(grads[0], grads[0], 2), None]

    a = plugrad.tensor([1.0, 2.0], device=own, requires_grad=True)
    scale_add(a, a.detach(), 3, gradient).backward(plugrad.tensor([1.0, 10.0], device=own))
    assert a.grad.tolist() == [3.0, 30.0]
    assert not scale_add(a, a, 3).requires_grad


def test_ops_are_captured(own):
    step = plugrad.compile(lambda x: scale_add(x, x + x, 3))
    for i in range(3):
        assert step(plugrad.tensor([1.0 * i], device=own)).tolist() == [5.0 * i]
    assert step.figures() == (1, 2, 0)


def test_what_does_not_fit_is_refused(own):
    a = plugrad.tensor([1.0, 2.0], device=own)
    with pytest.raises(ValueError, match="no private op of this name; it has these: scale_add"):
        plugrad.private_op("nothing", [a], [((2,), "f32")])
    with pytest.raises(ValueError, match="attributes of 0 bytes given, 8 expected"):
        plugrad.private_op("scale_add", [a, a], [((2,), "f32")])
    with pytest.raises(ValueError, match="a shape and a dtype"):
        plugrad.private_op("scale_add", [a, a], [((2,), "f32", 1)])
    with pytest.raises(NotImplementedError, match="no kernel for f64 <- f32, f32"):
        plugrad.private_op("scale_add", [a, a], [((2,), "f64")], attributes=bytes(8))
