"""Functions of functions: how they nest, what they refuse, and what they cost. test_vmap_samples.py has each function."""
import math

import plugrad
import plugrad.nn.functional as F
import pytest
from driver import DEVICE
from plugrad import func, nn

pytestmark = pytest.mark.usefixtures("device_under_test")


def close(got, expected, tolerance=1e-5):
    got, expected = got.detach(), expected.detach()
    assert got.shape == expected.shape
    assert plugrad.allclose(got, expected, rtol=tolerance, atol=tolerance), (got, expected)


@pytest.fixture
def x():
    plugrad.manual_seed(3)
    return plugrad.randn(5, 3, device=DEVICE)


@pytest.fixture
def w():
    plugrad.manual_seed(4)
    return plugrad.randn(4, 3, device=DEVICE)


def gradient(f, v):
    v = v.detach().requires_grad_(True)
    return plugrad.grad(f(v), v)[0]


# --- vmap

def test_axes_of_arguments_and_results(x, w):
    outer = func.vmap(func.vmap(lambda a, b: (a * b).sum(), (None, 0)), (0, None))
    close(outer(x, w), x @ w.T)
    close(func.vmap(lambda v: v * 2, in_dims=1, out_dims=1)(x), x * 2)
    close(func.vmap(lambda v: v * 2, in_dims=-1)(x), x.T * 2)
    pair = func.vmap(lambda a: {"twice": a["v"] * 2, "sum": (a["v"].sum(), a["c"])}, ({"v": 0, "c": None},),
                     {"twice": 1, "sum": 0})
    made = pair({"v": x, "c": w})
    close(made["twice"], x.T * 2)
    close(made["sum"][0], x.sum(1))
    close(made["sum"][1], w.unsqueeze(0).expand(5, 4, 3))
    close(func.vmap(lambda a, scale: a * scale)(x, scale=x[:, 0]), x * x[:, :1])
    close(func.vmap(lambda v: plugrad.ones(2, device=DEVICE))(x), plugrad.ones(5, 2, device=DEVICE))


@pytest.mark.parametrize("chunk", [1, 2, 5, 7])
def test_chunks(x, chunk):
    close(func.vmap(lambda v: v.cumsum(0), chunk_size=chunk)(x), x.cumsum(1))


def test_writes_inside(x):
    def filled(v):
        out = plugrad.zeros(4, device=DEVICE)
        out[0] = v.sum()
        out[1:3] = v[:2]
        out[3] = 7
        out.mul_(2)
        return out

    close(func.vmap(filled)(x), plugrad.stack([filled(v) for v in x]))

    def writes_argument(v):
        v.mul_(2)
        return v + 1

    before = x.clone()
    close(func.vmap(writes_argument)(x), before * 2 + 1)
    close(x, before)


def test_what_vmap_refuses(x):
    outside = plugrad.zeros(3, device=DEVICE)
    for function, match in [
        (lambda v: v.sum().item(), "each of 5 examples"),
        (lambda v: v if v.sum() > 0 else -v, "each of 5 examples"),
        (lambda v: outside.add_(v), "writes in place into a tensor from outside"),
        (lambda v: v + plugrad.randn(3, device=DEVICE), "random function"),
    ]:
        with pytest.raises(ValueError, match=match):
            func.vmap(function)(x)
    close(outside, plugrad.zeros(3, device=DEVICE))
    with pytest.raises(ValueError, match=r"\[5, 4\]|\[4, 5\]"):
        func.vmap(lambda a, b: a)(x, x[:4])
    with pytest.raises(ValueError, match="in_dims has 2"):
        func.vmap(lambda a: a, 2)(x)
    with pytest.raises(ValueError, match="no argument has examples"):
        func.vmap(lambda a: a, None)(x)
    with pytest.raises(TypeError, match="holds a int"):
        func.vmap(lambda a: 3)(x)
    with pytest.raises(ValueError, match="give at least one"):
        func.vmap(lambda a: a)(x[:0])
    close(x + 1, x + 1)  # the thread goes on as before


def test_random_numbers(x):
    plugrad.manual_seed(1)
    noise = func.vmap(lambda v: plugrad.rand(3, device=DEVICE) + 0 * v, randomness="different")(x)
    assert len({tuple(row) for row in noise.tolist()}) == 5
    plugrad.manual_seed(1)
    close(noise, plugrad.rand(5, 3, device=DEVICE))
    after = plugrad.rand(1, device=DEVICE).item()
    plugrad.manual_seed(1)
    plugrad.rand(5, 3, device=DEVICE)
    assert plugrad.rand(1, device=DEVICE).item() == after
    same = func.vmap(lambda v: plugrad.rand(3, device=DEVICE) + 0 * v, randomness="same")(x)
    assert len({tuple(row) for row in same.tolist()}) == 1


# --- Derivatives

def test_gradients_of_examples(x, w):
    def f(v):
        return plugrad.tanh(w @ v).sum() + (v * v).sum()

    close(func.vmap(func.grad(f))(x), plugrad.stack([gradient(f, v) for v in x]))
    (by_w, by_v), value = func.grad_and_value(lambda m, v: plugrad.tanh(m @ v).sum(), (0, 1))(w, x[0])
    slope = 1 - plugrad.tanh(w @ x[0]) ** 2
    close(by_w, slope.unsqueeze(1) * x[0])
    close(by_v, w.T @ slope)
    close(value, plugrad.tanh(w @ x[0]).sum())
    grads, aux = func.grad(lambda v: ((v * v).sum(), {"v": v * 3}), has_aux=True)(x[0])
    close(grads, 2 * x[0])
    close(aux["v"], 3 * x[0])
    assert not grads.requires_grad
    assert not aux["v"].requires_grad


def test_gradients_reach_tensors_from_outside(x, w):
    m = w.detach().requires_grad_(True)
    func.vmap(lambda v: plugrad.tanh(m @ v).sum())(x).sum().backward()
    close(m.grad, gradient(lambda u: plugrad.tanh(x @ u.T).sum(), w))
    m.grad = None
    func.vmap(func.grad(lambda v: plugrad.tanh(m @ v).sum()))(x).sum().backward()
    second = m.grad

    def of_gradient(u):
        v = x.detach().requires_grad_(True)
        return plugrad.grad(plugrad.tanh(v @ u.T).sum(), v, create_graph=True)[0].sum()

    close(second, gradient(of_gradient, w))
    m.grad = None
    func.jvp(lambda v: plugrad.tanh(m @ v).sum(), (x[0],), (x[1],))[1].backward()

    def of_tangent(u):
        v = x[0].detach().requires_grad_(True)
        return (plugrad.grad(plugrad.tanh(u @ v).sum(), v, create_graph=True)[0] * x[1]).sum()

    close(m.grad, gradient(of_tangent, w))


def test_hessians_by_each_pair_of_modes(x, w):
    def f(v):
        return (plugrad.sin(w @ v) * plugrad.exp(v.sum() * 0.1)).sum()

    wanted = func.jacrev(func.jacrev(f))(x[0])
    for outer in (func.jacfwd, func.jacrev):
        for inner in (func.jacfwd, func.jacrev):
            close(outer(inner(f))(x[0]), wanted, 1e-4)
    close(func.hessian(f)(x[0]), wanted, 1e-4)
    close(func.vmap(func.hessian(f))(x), plugrad.stack([func.hessian(f)(v) for v in x]), 1e-4)


def test_third_derivatives_by_all_orders_of_modes():
    def forward(f):
        return lambda s: func.jvp(f, (s,), (plugrad.ones((), dtype="f64", device=DEVICE),))[1]

    s = plugrad.tensor([0.7, -0.3], dtype=plugrad.f64, device=DEVICE)
    # (sin(s) e^(s / 2))''' = e^(s / 2) (1 / 8 sin s + 3 / 4 cos s - 3 / 2 sin s - cos s)
    wanted = plugrad.exp(s / 2) * ((1 / 8 - 3 / 2) * plugrad.sin(s) + (3 / 4 - 1) * plugrad.cos(s))
    for number in range(8):
        f = lambda v: plugrad.sin(v) * plugrad.exp(v / 2)  # noqa: E731
        for bit in range(3):
            f = func.grad(f) if number >> bit & 1 else forward(f)
        close(func.vmap(f)(s), wanted, 1e-10)
        close(plugrad.stack([f(each) for each in s]), wanted, 1e-10)


def test_jacobians_of_nested_values(x, w):
    def f(p, v):
        return {"a": p["m"] @ v, "b": (p["m"].sum() * v,)}

    for jacobian in (func.jacrev, func.jacfwd):
        by_p, by_v = (jacobian(f, argnums)({"m": w}, x[0]) for argnums in (0, 1))
        assert by_p["a"]["m"].shape == (4, 4, 3)
        close(by_v["a"], w)
        close(by_v["b"][0], w.sum() * plugrad.eye(3, device=DEVICE))
        close(by_p["b"][0]["m"], x[0].reshape(3, 1, 1).expand(3, 4, 3))
        close(jacobian(lambda v: w @ v, chunk_size=2)(x[0]), w)


def test_pullbacks_are_called_again_and_mapped(x, w):
    y, pullback = func.vjp(lambda v: plugrad.tanh(w @ v), x[0])
    slope = 1 - y ** 2
    for row in plugrad.eye(4, device=DEVICE):
        close(pullback(row)[0], w.T @ (slope * row))
    close(func.vmap(pullback)(plugrad.eye(4, device=DEVICE))[0], slope.unsqueeze(1) * w)
    jacobian = func.vmap(lambda seed: func.vjp(lambda v: func.vmap(plugrad.tanh)(v), x)[1](seed)[0])
    seeds = plugrad.stack([x, x * 2])
    close(jacobian(seeds), plugrad.stack([x, 2 * x]) * (1 - plugrad.tanh(x) ** 2))


def test_constants_of_forward_mode(x):
    def tangent(f):
        return func.jvp(f, (x[0],), (plugrad.ones(3, device=DEVICE),))[1]

    close(tangent(lambda v: v * v.detach()), x[0])
    close(tangent(lambda v: plugrad.round(v) * v), plugrad.round(x[0]))
    close(tangent(lambda v: v if v.sum() > 0 else -v), plugrad.ones(3, device=DEVICE) * math.copysign(1, x[0].sum().item()))
    close(tangent(lambda v: plugrad.zeros(3, device=DEVICE)), plugrad.zeros(3, device=DEVICE))
    with pytest.raises(ValueError, match="all of these must be equal"):
        func.jvp(plugrad.sin, (x[0],), (x,))
    with pytest.raises(ValueError, match="writes in place into a tensor from outside"):
        outside = plugrad.zeros(3, device=DEVICE)
        tangent(outside.add_)


def test_names_of_autograd_functional(x, w):
    functional = plugrad.autograd.functional

    def energy(a, b):
        return (plugrad.sin(a) * b).sum()

    a, b, v = x[0], x[1], x[2]
    close(functional.jacobian(lambda u: w @ u, a), w)
    close(functional.jacobian(lambda u: w @ u, a, strategy="forward-mode"), w)
    close(functional.jacobian(lambda p, q: p * q, (a, b))[1], plugrad.diag(a))
    result, product = functional.vjp(lambda u: w @ u, a, w[:, 0])
    close(product, w.T @ w[:, 0])
    close(result, w @ a)
    close(functional.jvp(lambda u: w @ u, a, v)[1], w @ v)
    close(functional.hessian(energy, (a, b))[0][1], plugrad.diag(plugrad.cos(a)))
    for product in (functional.hvp, functional.vhp):
        value, (by_a, by_b) = product(energy, (a, b), (v, v))
        close(value, energy(a, b))
        close(by_a, -plugrad.sin(a) * b * v + plugrad.cos(a) * v)
        close(by_b, plugrad.cos(a) * v)
    leaf = a.detach().requires_grad_(True)
    functional.vjp(plugrad.sin, leaf, v, create_graph=True)[1].sum().backward()
    close(leaf.grad, -plugrad.sin(a) * v)
    assert not functional.vjp(plugrad.sin, leaf, v)[1].requires_grad


# --- Modules

def model():
    plugrad.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)).to(DEVICE)


def test_gradients_of_a_module_for_each_example(x):
    net, target = model(), plugrad.tensor([0, 1, 1, 0, 1], device=DEVICE)
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def loss(p, v, t):
        return F.cross_entropy(func.functional_call(net, p, (v.unsqueeze(0),)), t.unsqueeze(0))

    got = func.vmap(func.grad(loss), (None, 0, 0))(parameters, x, target)
    for i in range(5):
        net.zero_grad()
        F.cross_entropy(net(x[i:i + 1]), target[i:i + 1]).backward()
        for name, p in net.named_parameters():
            close(got[name][i], p.grad)


def test_an_ensemble_of_modules(x):
    models = [model() for _ in range(3)]
    for i, each in enumerate(models):
        with plugrad.no_grad():
            for p in each.parameters():
                p.mul_(i + 1)
    parameters, buffers = func.stack_module_state(models)
    assert parameters["0.weight"].shape == (3, 8, 3)
    assert parameters["0.weight"].requires_grad
    made = func.vmap(lambda p, b, v: func.functional_call(models[0], (p, b), (v,)), (0, 0, None))(parameters, buffers, x)
    close(made, plugrad.stack([each(x) for each in models]))
    made.sum().backward()
    models[1](x).sum().backward()
    close(parameters["2.weight"].grad[1], dict(models[1].named_parameters())["2.weight"].grad)


def test_functional_call_restores_the_module(x):
    net = model()
    before = {name: p for name, p in net.named_parameters()}
    with pytest.raises(ValueError, match="no parameter or buffer 'nothing'"):
        func.functional_call(net, {"nothing": x}, (x,))
    with pytest.raises(ValueError, match="has no value"):
        func.functional_call(net, {"0.weight": before["0.weight"]}, (x,), strict=True)
    with pytest.raises(ValueError):
        func.functional_call(net, {"0.weight": x[0]}, (x,))
    assert all(p is before[name] for name, p in net.named_parameters())
    tied = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)).to(DEVICE)
    tied[1].weight = tied[0].weight
    eye = plugrad.eye(3, device=DEVICE)
    close(func.functional_call(tied, {"0.weight": eye}, (x,)), x + tied[0].bias + tied[1].bias)


def test_convolutions_and_norms_for_each_example():
    plugrad.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, groups=2),
                        nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(16, 3), nn.LayerNorm(3)).to(DEVICE)
    images, target = plugrad.randn(4, 2, 8, 8, device=DEVICE), plugrad.tensor([0, 2, 1, 0], device=DEVICE)
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def loss(p, image, t):
        return F.cross_entropy(func.functional_call(net, p, (image.unsqueeze(0),)), t.unsqueeze(0))

    got = func.vmap(func.grad(loss), (None, 0, 0))(parameters, images, target)
    for i in range(4):
        net.zero_grad()
        F.cross_entropy(net(images[i:i + 1]), target[i:i + 1]).backward()
        for name, p in net.named_parameters():
            close(got[name][i], p.grad, 1e-4)
    own = func.vmap(lambda p, image: func.functional_call(net, p, (image.unsqueeze(0),)))(
        {name: plugrad.stack([p * (i + 1) for i in range(4)]) for name, p in parameters.items()}, images)
    for i in range(4):
        close(own[i], func.functional_call(net, {n: p * (i + 1) for n, p in parameters.items()}, (images[i:i + 1],)), 1e-4)


def test_attention_for_each_example():
    plugrad.manual_seed(0)
    q, k, v = (plugrad.randn(3, 2, 5, 4, device=DEVICE) for _ in range(3))
    attend = F.scaled_dot_product_attention
    for axes, (a, b, c) in [((0, 0, 0), (q, k, v)), ((0, None, None), (q, k[0], v[0])), ((0, None, 0), (q, k[0], v))]:
        got = func.vmap(attend, axes)(a, b, c)
        for i in range(3):
            pick = [x if axis is None else x[i] for x, axis in zip((a, b, c), axes, strict=True)]
            close(got[i], attend(*pick))
    hessian = func.hessian(lambda x: attend(x, k[0], v[0]).sum())(q[0])
    close(hessian, func.jacrev(func.jacrev(lambda x: attend(x, k[0], v[0]).sum()))(q[0]))


# --- With other features

def test_compiled(x, w):
    def f(m, v):
        return plugrad.tanh(m @ v).sum()

    for function in (func.vmap(func.grad(f), (None, 0)), func.vmap(func.hessian(f, 1), (None, 0)), func.jacfwd(f)):
        step = plugrad.compile(lambda m, v, function=function: function(m, v))
        given = (w, x[0] if function.__wrapped__ is f else x)
        for scale in (1, 2, 3, 4):
            got = step(given[0] * scale, given[1])
            close(got, function(given[0] * scale, given[1]))
        assert step.figures().replayed >= 2, step.explain()


def test_compiled_steps_inside(x):
    step = plugrad.compile(lambda v: v * v + 1)
    step(x[0])
    step(x[0])
    close(func.vmap(step)(x), x * x + 1)
    close(func.jvp(lambda v: step(v), (x[0],), (x[1],))[1], 2 * x[0] * x[1])


def test_halves_and_integers(x):
    half = x.to(plugrad.f16)
    close(func.vmap(lambda v: v * 2 + v.sum())(half).float(), (half * 2 + half.sum(1, keepdim=True)).float(), 1e-2)
    numbers = plugrad.tensor([[3, 1, 2], [9, 8, 7]], device=DEVICE)
    assert func.vmap(lambda v: v.sort().values)(numbers).tolist() == [[1, 2, 3], [7, 8, 9]]
    texts = []
    func.vmap(lambda v: v + (texts.append(repr(v)) or 0))(x)
    assert "one of many examples inside vmap, of shape (3,)" in texts[0]
    assert func.vmap(lambda v, i: v[i])(x, plugrad.tensor([0, 1, 2, 0, 1], device=DEVICE)).tolist() == [
        x[row, column].item() for row, column in enumerate([0, 1, 2, 0, 1])]
