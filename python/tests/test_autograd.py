"""Recording, gradients as a function, and pictures of graphs."""
import shutil
import threading

import plugrad
import pytest
from plugrad import Tensor, Value


def test_no_grad():
    x = Tensor([1.0])
    with plugrad.no_grad():
        assert not plugrad.grad_enabled() and not (x * 2).requires_grad
        with plugrad.enable_grad():
            assert (x * 2).requires_grad
        assert not plugrad.grad_enabled()
    assert plugrad.grad_enabled()


def test_no_grad_ends_with_an_error():
    with pytest.raises(KeyError), plugrad.no_grad():
        raise KeyError
    assert plugrad.grad_enabled()


def test_no_grad_decorates():
    @plugrad.no_grad()
    def double(x, depth=2):
        """Twice."""
        return double(x, depth - 1) if depth else x * 2
    assert not double(Tensor([1.0])).requires_grad and plugrad.grad_enabled() and double.__doc__ == "Twice."


def test_no_grad_may_be_entered_again():
    mode = plugrad.no_grad()
    with mode, mode:
        assert not plugrad.grad_enabled()
    assert plugrad.grad_enabled()


def test_modes_are_the_threads_own():
    seen = []
    with plugrad.no_grad():
        thread = threading.Thread(target=lambda: seen.append(plugrad.grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_grad():
    x = Tensor([2.0, 3.0])
    y = (x**3).sum()
    (first,) = plugrad.grad(y, x, create_graph=True)
    assert first.tolist() == [12, 27] and x.grad is None
    (second,) = plugrad.grad([first.sum()], [x])
    assert second.tolist() == [12, 18]


def test_grad_with_seeds_and_unused_inputs():
    x, z = Tensor([2.0, 3.0]), Tensor([1.0])
    y = x * x
    assert plugrad.grad([y], [x], grad_outputs=[plugrad.tensor([1.0, 10.0])], retain_graph=True)[0].tolist() == [4, 60]
    assert plugrad.grad(y, [x, z], grad_outputs=plugrad.ones((2,)), allow_unused=True, retain_graph=True)[1] is None
    with pytest.raises(ValueError, match="allow_unused"):
        plugrad.grad(y.sum(), [z], retain_graph=True)
    with pytest.raises(ValueError):
        plugrad.grad(y, [x])


def test_backward_of_several():
    x = Tensor([2.0])
    plugrad.backward([x * 2, x * 3], [None, plugrad.tensor([10.0])])
    assert x.grad.item() == 32


def test_create_graph_in_backward():
    x = Tensor([2.0])
    (x**3).backward(create_graph=True)
    x.grad.backward()
    assert x.grad.item() == 12 + 12


def test_a_saved_value_that_was_changed():
    x = Tensor([2.0])
    y = x.exp() if False else x * x
    with plugrad.no_grad():
        x.fill_(5)
    with pytest.raises(ValueError, match="changed in place"):
        y.backward()


def test_draw_dot_of_values():
    a, b = Value(2), Value(3)
    a.label = "weight <1>"
    c = (a * b).relu()
    c.backward()
    text = plugrad.draw_dot(c).source
    assert text.startswith("digraph {") and text.rstrip().endswith("}") and "rankdir=LR" in text
    assert text.count("shape=record") == 4 and 'label="*"' in text and 'label="ReLU"' in text
    assert "weight\\ \\<1\\> | data 2 | grad 3" in text and "{ data 3 | grad 2 }" in text
    assert text.count("data 6 | grad 1") == 2
    assert "rankdir=TB" in plugrad.draw_dot(c, rankdir="TB").source
    assert str(plugrad.draw_dot(c)) == text


def test_draw_dot_of_tensors():
    x = Tensor([[1.0, 2.0]])
    y = ((x * x).sum() * 3).relu()
    text = plugrad.draw_dot(y).source
    assert "shape (1,\\ 2)" in text and 'label="sum"' in text and "data 15" in text
    assert "n0 " in plugrad.draw_dot(plugrad.ones((2,))).source


def test_draw_dot_limits():
    x = Value(1)
    for _ in range(100):
        x = x + 1
    with pytest.raises(ValueError, match="50"):
        plugrad.draw_dot(x, limit=50)
    with pytest.raises(ValueError, match="XY"):
        plugrad.draw_dot(x, rankdir="XY")


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_pictures(tmp_path):
    dot = plugrad.draw_dot(Value(1) + 2)
    assert b"<svg" in dot.render() and "<svg" in dot._repr_svg_() and "image/svg+xml" in dot._repr_mimebundle_()
    dot.save(tmp_path / "graph.svg")
    assert b"<svg" in (tmp_path / "graph.svg").read_bytes()


def test_without_graphviz_the_text_is_shown(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    dot = plugrad.draw_dot(Value(1) + 2)
    assert dot._repr_svg_() is None and dot._repr_mimebundle_() == {"text/plain": dot.source}
    with pytest.raises(RuntimeError, match="Graphviz"):
        dot.render()
    dot.save(tmp_path / "graph.dot")
    assert (tmp_path / "graph.dot").read_text() == dot.source


def test_set_grad_enabled():
    assert plugrad.is_grad_enabled()
    with plugrad.set_grad_enabled(False):
        assert not plugrad.is_grad_enabled()
        with plugrad.set_grad_enabled(True):
            assert plugrad.is_grad_enabled()
        assert not plugrad.is_grad_enabled()
    assert plugrad.is_grad_enabled()
    for mode in (False, False, True, False, True, True):
        plugrad.set_grad_enabled(mode)
        assert plugrad.is_grad_enabled() == mode
    with plugrad.no_grad():
        plugrad.set_grad_enabled(True)
        assert plugrad.is_grad_enabled()
    assert plugrad.is_grad_enabled()
    plugrad.set_grad_enabled(False)
    assert not plugrad.is_grad_enabled()
    plugrad.set_grad_enabled(True)
    with plugrad.inference_mode():
        assert not (plugrad.Tensor([1.0]) * 2).requires_grad
