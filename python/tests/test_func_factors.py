"""Factors of matrices under vmap, and in forward and reverse mode."""
import plugrad
import pytest
from driver import DEVICE
from plugrad import func
from test_func import close, gradient

pytestmark = pytest.mark.usefixtures("device_under_test")


def test_linear_algebra():
    plugrad.manual_seed(5)
    x = plugrad.randn(5, 3, device=DEVICE)
    a = plugrad.randn(4, 3, 3, device=DEVICE)
    spd = a @ a.transpose(-1, -2) + 3 * plugrad.eye(3, device=DEVICE)
    try:
        plugrad.linalg.cholesky(spd[0])
    except NotImplementedError:
        pytest.skip("the device factors no matrices")
    for function in (plugrad.linalg.cholesky, plugrad.linalg.inv, plugrad.linalg.det,
                     lambda m: plugrad.linalg.solve(m, x[0])):
        close(func.vmap(function)(spd), plugrad.stack([function(each) for each in spd]), 1e-4)
    close(func.vmap(func.grad(lambda m: plugrad.linalg.det(m)))(spd),
          plugrad.stack([gradient(plugrad.linalg.det, each) for each in spd]), 1e-3)


def squares(matrices):
    """Without the signs of vectors, which a factorisation chooses."""
    return [each * each for each in matrices]


def symmetric(a):
    return (a + a.transpose(-1, -2)) / 2


FACTORS = {
    "cholesky": (plugrad.linalg.cholesky, "positive"), "inv": (plugrad.linalg.inv, (4, 4)),
    "det": (plugrad.linalg.det, (3, 3)), "slogdet": (lambda a: plugrad.linalg.slogdet(a)[1], (3, 3)),
    "solve": (lambda a: plugrad.linalg.solve(a, a[:, :2] * a[:, 2:]), (4, 4)),
    "solve_triangular": (lambda a: plugrad.linalg.solve_triangular(a, a[:, :2] ** 2, upper=True), "positive"),
    "cholesky_solve": (lambda a: plugrad.cholesky_solve(a[:, :1] ** 2, plugrad.linalg.cholesky(a)), "positive"),
    "eigh": (lambda a: [plugrad.linalg.eigh(symmetric(a))[0], *squares(plugrad.linalg.eigh(symmetric(a))[1:])], (4, 4)),
    "eigvalsh": (lambda a: plugrad.linalg.eigvalsh(symmetric(a)), (4, 4)),
    "svd": (lambda a: squares(plugrad.linalg.svd(a, full_matrices=False)), (4, 3)),
    "svd of wide": (lambda a: squares(plugrad.linalg.svd(a, full_matrices=False)), (3, 5)),
    "svdvals": (plugrad.linalg.svdvals, (4, 3)), "qr": (lambda a: list(plugrad.linalg.qr(a)), (5, 3)),
    "qr, only r": (lambda a: plugrad.linalg.qr(a, mode="r")[1], (5, 3)), "pinv": (plugrad.linalg.pinv, (5, 3)),
    "lstsq": (lambda a: plugrad.linalg.lstsq(a, a[:, :1] * a[:, 1:2])[0], (5, 3)),
    "lu": (lambda a: list(plugrad.linalg.lu(a))[1:], (4, 4)), "cond": (plugrad.linalg.cond, (3, 3))}


@pytest.mark.parametrize("name", FACTORS)
def test_factors_in_both_modes_and_under_vmap(name):
    function, shape = FACTORS[name]
    plugrad.manual_seed(7)
    a = plugrad.randn(*((4, 4) if shape == "positive" else shape), dtype="f64", device=DEVICE)
    if shape == "positive":
        a = a @ a.T + 4 * plugrad.eye(4, dtype="f64", device=DEVICE)

    def listed(x):
        made = function(x)
        return list(made) if isinstance(made, (list, tuple)) else [made]

    try:
        plain, pullback = func.vjp(listed, a)
    except NotImplementedError:
        pytest.skip("the device factors no matrices")
    along = plugrad.randn(*a.shape, dtype="f64", device=DEVICE)
    values, tangents = func.jvp(listed, (a,), (along,))
    seeds = [plugrad.randn(tuple(y.shape), dtype="f64", device=DEVICE) for y in plain]
    for got, expected in zip(values, plain, strict=True):
        close(got, expected, 1e-12)
    forward = sum((w * t).sum() for w, t in zip(seeds, tangents, strict=True))
    close(forward, (pullback(seeds)[0] * along).sum(), 1e-9)
    gradient = func.grad(lambda x: sum((y * y * y).sum() for y in listed(x)))
    got = func.vmap(lambda x: func.jvp(gradient, (x,), (along,))[1])(plugrad.stack([a, a * 1.5]))
    for i in range(2):
        expected = func.vjp(gradient, a * (1 + i / 2))[1](along)[0]
        scale = max(expected.abs().max().item(), 1)
        close(got[i] / scale, expected / scale, 1e-8)


def test_complex_equations():
    plugrad.manual_seed(8)
    a, along = (plugrad.complex(plugrad.randn(3, 3, dtype="f64"), plugrad.randn(3, 3, dtype="f64")) for _ in range(2))
    identity = plugrad.eye(3, dtype="complex128")
    functions = {"inv": plugrad.linalg.inv, "det": plugrad.linalg.det, "solve": lambda x: plugrad.linalg.solve(x, x @ x),
                 "cholesky": lambda x: plugrad.linalg.cholesky(x @ x.mH + 3 * identity)}
    for name, function in functions.items():
        tangent, step = func.jvp(function, (a,), (along,))[1], 1e-6
        difference = (function(a + step * along) - function(a - step * along)) / (2 * step)
        assert float((tangent - difference).abs().max()) < 1e-6 * (1 + float(difference.abs().max())), name
