"""Functions of the program that forward or backward passes call: hooks, functions with their own gradients, checkpoints."""
import gc
import threading
import weakref

import plugrad
import pytest
from plugrad import Function, Tensor, autograd


def leaf(*numbers, dtype="f64"):
    return plugrad.tensor(list(numbers), dtype=dtype, requires_grad=True)


# --- Hooks.

def test_hooks_see_and_replace_gradients():
    x = leaf(1.0, 2.0)
    y = x * x
    seen = []
    x.register_hook(lambda grad: seen.append(grad.tolist()))
    y.register_hook(lambda grad: grad * 10)
    y.sum().backward()
    assert seen == [[20, 40]] and x.grad.tolist() == [20, 40]


def test_a_hook_is_removed():
    x = leaf(1.0)
    calls = []
    handle = x.register_hook(calls.append)
    with x.register_hook(calls.append):
        x.sum().backward()
    assert len(calls) == 2
    handle.remove()
    x.sum().backward()
    assert len(calls) == 2


def test_a_hook_that_raises_changes_no_gradient():
    x, w = leaf(1.0), leaf(2.0)

    def fail(grad):
        raise KeyError("enough")
    handle = x.register_hook(fail)
    with pytest.raises(KeyError, match="enough"):
        (x * w).backward()
    assert x.grad is None and w.grad is None
    handle.remove()
    x.register_hook(lambda grad: 3)
    with pytest.raises(TypeError, match="register_hook"):
        (x * w).backward()


def test_a_post_accumulate_hook_gets_the_tensor_itself():
    x = leaf(1.0, 2.0)
    steps = {}

    def step(parameter):
        steps[parameter] = parameter.grad.tolist()
        with plugrad.no_grad():
            parameter -= parameter.grad
        parameter.grad = None
    x.register_post_accumulate_grad_hook(step)
    (x * 3).sum().backward()
    assert steps[x] == [3, 3] and x.tolist() == [-2, -1] and x.grad is None
    with pytest.raises(ValueError, match="register_hook"):
        (x * 2).register_post_accumulate_grad_hook(step)


def test_a_hook_outlives_the_object_that_registered_it():
    x = leaf(1.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.item()))
    y = x * 2
    del x
    y.backward()
    assert seen == [2]


def test_hooks_on_threads_and_references_dropped_without_the_lock():
    class Marker:
        pass

    def work(results):
        marker = Marker()
        x = leaf(*([1.0] * 10000))
        y = (x * x).sum()
        y.register_hook(lambda grad, kept=marker: grad * 2)
        y.backward()
        results.append((x.grad[0].item(), weakref.ref(marker)))
    results = []
    threads = [threading.Thread(target=work, args=(results,)) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    gc.collect()
    assert [value for value, _ in results] == [4] * 4
    assert all(marker() is None for _, marker in results)


# --- Functions.

class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * x * 3


class Scaled(Function):
    """A function with arguments that are not tensors, and with three results, one of which is not a tensor."""

    @staticmethod
    def forward(ctx, factor, x, name, y):
        ctx.factor, ctx.needs = factor, ctx.needs_input_grad
        scaled = x * y * factor
        ctx.save_for_backward(x, None, y, scaled)
        return scaled, name, x + y

    @staticmethod
    def backward(ctx, of_product, of_name, of_sum):
        x, none, y, scaled = ctx.saved_tensors
        assert none is None and of_name is None and ctx.needs == (False, True, False, True)
        return None, of_product * scaled / x + of_sum, None, of_product * scaled / y + of_sum


def test_a_function_has_derivatives_of_all_orders():
    x = leaf(2.0)
    y = Cube.apply(x)
    assert y.item() == 8 and y.op == "Cube"
    for expected in 12, 12, 6:
        (y,) = plugrad.grad(y, x, create_graph=True)
        assert y.item() == expected


def test_arguments_and_results_of_any_type():
    x, y = leaf(2.0), leaf(5.0)
    scaled, name, total = Scaled.apply(3, x, "name", y)
    assert name == "name" and scaled.item() == 30 and total.item() == 7
    (scaled + total * 10).backward()
    assert x.grad.item() == 25 and y.grad.item() == 16
    with plugrad.no_grad():
        assert not Scaled.apply(3, x, "name", y)[0].requires_grad
    assert isinstance(Cube.apply(leaf(1.0)), Tensor)


def test_gradcheck_of_functions():
    x, y = leaf(2.0, 3.0), leaf(5.0, 7.0)
    assert plugrad.gradcheck(Cube.apply, x) and plugrad.gradgradcheck(Cube.apply, x)

    def both(a, b):
        product, _, total = Scaled.apply(3, a, "name", b)
        return product, total
    assert plugrad.gradcheck(both, (x, y)) and plugrad.gradgradcheck(both, (x, y))


def test_setup_context():
    class Square(Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0] * 2
    assert plugrad.gradcheck(Square.apply, leaf(2.0, 3.0))


def test_results_without_gradient():
    class Sorted(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            rounded = x * 1
            ctx.mark_non_differentiable(rounded)
            return x * 2, x.argmax(), rounded

        @staticmethod
        def backward(ctx, grad, of_place, of_rounded):
            assert of_place is None and of_rounded is None
            return grad * 2
    x = leaf(1.0, 3.0)
    doubled, place, rounded = Sorted.apply(x)
    assert place.item() == 1 and not place.requires_grad and not rounded.requires_grad
    doubled.sum().backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(NotImplementedError, match="mark_dirty"):
        autograd.FunctionContext().mark_dirty(x)


@pytest.mark.parametrize("returned, error, text", [
    (lambda g: (g, g), ValueError, "argument 1"),
    (lambda g: (), ValueError, "0 gradients"),
    (lambda g: 3, TypeError, "Odd"),
    (lambda g: plugrad.zeros((5,), dtype="f64"), ValueError, r"\[Odd\].*\(5,\)"),
    (lambda g: (g, None), None, None),
])
def test_gradients_that_do_not_fit(returned, error, text):
    class Odd(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return returned(grad)
    x = leaf(1.0, 2.0)
    y = Odd.apply(x).sum()
    if error is None:
        y.backward()
        assert x.grad.tolist() == [1, 1]
    else:
        with pytest.raises(error, match=text):
            y.backward()
        assert x.grad is None


def test_a_saved_tensor_that_changed():
    x = leaf(2.0)
    y = Cube.apply(x)
    with plugrad.no_grad():
        x.fill_(3)
    with pytest.raises(ValueError, match=r"\[Cube\].*changed in place"):
        y.backward()


def test_a_function_frees_its_context():
    class Kept(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.marker = Marker()
            markers.append(weakref.ref(ctx.marker))
            y = x * x
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            if fail:
                raise KeyError
            return grad * ctx.saved_tensors[0]

    class Marker:
        pass
    markers = []
    for fail in False, True:
        y = Kept.apply(leaf(1.0))
        if fail:
            with pytest.raises(KeyError):
                y.backward()
        else:
            y.backward()
        assert markers[-1]() is not None
        del y
        assert markers[-1]() is None


def test_an_abstract_function():
    with pytest.raises(NotImplementedError, match="forward"):
        Function.apply(leaf(1.0))


# --- Checkpoints.

def test_checkpoint_gives_the_same_gradients():
    layer = plugrad.nn.Linear(3, 4)
    x = plugrad.ones((2, 3)).requires_grad_()
    calls = []

    def block(data, names, factor=1):
        calls.append(names)
        return {"out": (layer(data).tanh() * factor).exp()}
    plugrad.checkpoint(block, x, ["a"], factor=2, use_reentrant=False)["out"].sum().backward()
    actual = [x.grad.tolist(), *(each.grad.tolist() for each in layer.parameters())]
    assert calls == [["a"], ["a"]]
    x.grad = None
    layer.zero_grad()
    block(x, None, factor=2)["out"].sum().backward()
    assert actual == [x.grad.tolist(), *(each.grad.tolist() for each in layer.parameters())]


def test_checkpoint_repeats_dropout_and_nests():
    x = plugrad.ones((1000,)).requires_grad_()

    def inner(data):
        return plugrad.dropout(data * data, 0.5)

    def outer(data):
        return plugrad.checkpoint(inner, data.exp()) + inner(data)
    plugrad.manual_seed(7)
    y = plugrad.checkpoint(outer, x)
    y.sum().backward()
    actual = x.grad.tolist()
    x.grad = None
    plugrad.manual_seed(7)
    outer(x).sum().backward()
    assert actual == x.grad.tolist()


def test_checkpoint_frees_what_the_function_refers_to():
    class Marker:
        pass
    marker = Marker()
    watched = weakref.ref(marker)
    y = plugrad.checkpoint(lambda data, kept=marker: data.exp(), leaf(1.0))
    del marker
    assert watched() is not None
    y.backward()
    gc.collect()
    assert watched() is None


def test_checkpoint_errors():
    x, fail = leaf(1.0), [False]

    def block(data):
        if fail[0]:
            raise KeyError("enough")
        return data.exp()
    y = plugrad.checkpoint(block, x)
    fail[0] = True
    with pytest.raises(KeyError, match="enough"):
        y.backward()
    assert x.grad is None
    fail[0] = False
    y.backward()
    assert x.grad.item() == pytest.approx(2.718281828)
