"""Random compositions of transforms, three deep, beside the same derivatives by nested jvp alone: each way to multiply by a
Jacobian, or to apply a function to several examples, has several spellings."""
import random

import plugrad
import pytest
from driver import DEVICE, SEED
from plugrad import func

pytestmark = pytest.mark.usefixtures("device_under_test")
N = 3


def numbers(*values):
    return plugrad.tensor(values, dtype=plugrad.f64, device=DEVICE)


def eye():
    return plugrad.eye(N, dtype="f64", device=DEVICE)


def base(x, w):
    """w enters linearly, alone and in a product, and not linearly."""
    return plugrad.tanh(x * w) * x.flip(0) + x[0] * x + w * x.sum() + w * w + w


def direction(x):
    return plugrad.sin(x * 3 + 1).detach()


# --- Products of the Jacobian with a vector on the right, and on the left; values at several points.

def by_two_vjps(f, x):
    pullback = func.vjp(f, x)[1]
    return func.vjp(lambda u: pullback(u)[0], plugrad.zeros_like(x))[1](direction(x))[0]


RIGHT = [lambda f, x: func.jvp(f, (x,), (direction(x),))[1], lambda f, x: func.jacfwd(f)(x) @ direction(x),
         lambda f, x: func.jacrev(f)(x) @ direction(x), by_two_vjps,
         lambda f, x: direction(x) @ func.vmap(lambda t: func.jvp(f, (x,), (t,))[1])(eye())]
LEFT = [lambda f, x: func.vjp(f, x)[1](direction(x))[0], lambda f, x: direction(x) @ func.jacrev(f)(x),
        lambda f, x: direction(x) @ func.jacfwd(f)(x), lambda f, x: func.grad(lambda v: (f(v) * direction(x)).sum())(x),
        lambda f, x: direction(x) @ func.vmap(lambda s, g=func.vjp(f, x)[1]: g(s)[0])(eye())]
POINTS = [lambda f, x: func.vmap(f)(plugrad.stack([x, 2 * x, -x])).sum(0),
          lambda f, x: func.vmap(lambda s: f(s * x))(numbers(1, 2, -1)).sum(0),
          lambda f, x: func.vmap(f, chunk_size=2, out_dims=1)(plugrad.stack([x, 2 * x, -x])).sum(1)]


def by_jvp_alone(kind, f, x):
    if kind is POINTS:
        return f(x) + f(2 * x) + f(-x)
    if kind is RIGHT:
        return func.jvp(f, (x,), (direction(x),))[1]
    return direction(x) @ plugrad.stack([func.jvp(f, (x,), (row,))[1] for row in eye()], 1)


def composed(rng, depth):
    """Two functions of (x, w) that compute the same, and the names of the first one's parts."""
    got, wanted, names = base, base, []
    for _ in range(depth):
        kind = rng.choice([RIGHT, RIGHT, LEFT, LEFT, POINTS])
        choice = rng.randrange(len(kind))
        names.append((["RIGHT", "LEFT", "POINTS"][[RIGHT, LEFT, POINTS].index(kind)], choice))
        got = lambda x, w, f=got, t=kind[choice]: t(lambda v: f(v, w), x)  # noqa: E731
        wanted = lambda x, w, f=wanted, k=kind: by_jvp_alone(k, lambda v: f(v, w), x)  # noqa: E731
    return got, wanted, names


def close(got, wanted, names):
    scale = max(wanted.abs().max().item(), 1)
    assert plugrad.allclose(got / scale, wanted / scale, rtol=1e-8, atol=1e-9), (names, got, wanted)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_compositions(depth):
    rng = random.Random(SEED + depth)
    x = numbers(0.3, -0.7, 0.5)
    for _ in range(60):
        got, wanted, names = composed(rng, depth)
        w = numbers(1.5, -0.5, 0.25)
        close(got(x, w), wanted(x, w), names)


@pytest.mark.parametrize("depth", [1, 2])
def test_gradients_of_tensors_from_outside(depth):
    """The gradient for w, which the innermost function reads: by reverse mode, beside differences of the whole composition
    along one direction in forward mode."""
    rng = random.Random(SEED + 10 * depth)
    x = numbers(0.3, -0.7, 0.5)
    for _ in range(60):
        got, wanted, names = composed(rng, depth)
        along = numbers(0.5, 1.0, -2.0)
        expected = func.jvp(lambda w, f=wanted: f(x, w).sum(), (numbers(1.5, -0.5, 0.25),), (along,))[1]
        leaf = numbers(1.5, -0.5, 0.25).requires_grad_(True)
        got(x, leaf).sum().backward()
        close((leaf.grad * along).sum() if leaf.grad is not None else plugrad.zeros_like(expected), expected, names)
        close(func.grad(lambda w, f=got: f(x, w).sum())(leaf.detach()) @ along, expected, names)
