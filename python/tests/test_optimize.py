"""plugrad.optimize: SciPy's numbers of evaluations, minima, options and results."""

import copy
import math
import pickle

import numpy
import pytest

import plugrad
from minimization_problems import PROBLEMS
from plugrad import func, optimize

# The evaluations of SciPy 1.17 with the same derivatives: L-BFGS-B, BFGS, lm and trf. On JENSMP its L-BFGS-B gives up where
# the function overflows.
EVALUATIONS = {
    "ROSENBR": (44, 39, 21, 25),
    "BEALE": (16, 17, 9, 7),
    "HELIX": (32, 35, 2, 31),
    "WOODS": (20, 106, 70, 76),
    "POWELLSG": (30, 40, 37, 13),
    "POWELLBS": (4, 186, 19, 43),
    "BARD": (24, 24, 6, 6),
    "KOWOSB": (34, 34, 18, 20),
    "BIGGS6": (42, 45, 44, 80),
    "BOX3": (38, 28, 7, 6),
    "BROWNDEN": (19, 36, 266, 26),
    "JENSMP": (None, 49, 21, 20),
    "FREUROTH": (20, 10, 14, 24),
    "OSBORNEA": (43, 66, 18, 19),
    "MEYER3": (33, 439, 126, 186),
    "WATSON": (55, 38, 8, 8),
    "EXTROSNB": (80, 107, 25, 29),
    "CHNROSNB": (50, 73, 18, 23),
}


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def vector(*numbers):
    return plugrad.tensor(list(numbers), dtype="f64")


@pytest.mark.parametrize("name, residuals, start", PROBLEMS, ids=[name for name, _, _ in PROBLEMS])
def test_searches_need_no_more_evaluations_than_scipys(name, residuals, start):
    def value(x):
        return (residuals(x) ** 2).sum()
    found = [optimize.minimize(value, start, method="L-BFGS-B"), optimize.minimize(value, start, method="BFGS"),
             optimize.least_squares(residuals, start, method="lm"), optimize.least_squares(residuals, start, method="trf")]
    for result, most in zip(found, EVALUATIONS[name], strict=True):
        assert result.success or result.status == 2  # BFGS ends where rounding stops it
        assert most is None or result.nfev <= 1.1 * most
    assert found[3].cost == pytest.approx(0.5 * value(found[3].x).item())


# --- Minima.

METHODS = ["BFGS", "L-BFGS-B", "trust-ncg", "trust-exact"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("compiled", [False, True])
def test_every_method_finds_rosenbrocks_minimum(method, compiled):
    result = optimize.minimize(rosenbrock, [-1.2, 1, 0.5], method=method, compile=compiled)
    assert result.success and result.x.tolist() == pytest.approx([1, 1, 1], abs=1e-4)
    assert result.fun == pytest.approx(rosenbrock(result.x).item(), rel=1e-12, abs=1e-30)
    assert result.jac.tolist() == pytest.approx(func.grad(rosenbrock)(result.x).tolist(), abs=1e-12)
    assert (result.nhev > 0) == method.startswith("trust")


@pytest.mark.parametrize("method", METHODS)
def test_x_keeps_its_shape_and_dtype(method):
    start = plugrad.tensor([[3.0], [-2.0]])
    result = optimize.minimize(lambda x: ((x - 1) ** 4).sum() + (x * x).sum(), start, method=method)
    assert result.x.shape == result.jac.shape == (2, 1) and result.x.dtype == plugrad.float32
    assert result.x.tolist() == [pytest.approx([0.41025], abs=1e-3)] * 2
    scalar = optimize.minimize(lambda x: (x - 2) ** 2, 5.0, method=method)
    assert scalar.x.shape == () and scalar.x.item() == pytest.approx(2)


def test_bounds_hold_the_minimum():
    bounds = [(-2, 0.5), (None, None)]
    points = []
    result = optimize.minimize(rosenbrock, [-1.2, 1], bounds=bounds, callback=lambda x: points.append(x.tolist()))
    assert result.x.tolist() == pytest.approx([0.5, 0.25]) and result.fun == pytest.approx(0.25)
    assert all(-2 <= x <= 0.5 for x, _ in points) and len(points) == result.nit
    for given in (optimize.Bounds([-2, -math.inf], [0.5, math.inf]), optimize.Bounds(ub=vector(0.5, 9))):
        assert optimize.minimize(rosenbrock, [-1.2, 1], bounds=given).fun == pytest.approx(0.25)
    below = optimize.minimize(rosenbrock, [-5, 7], bounds=[(-1, -1), (2, 3)])
    assert below.x.tolist() == [-1, 2] and below.jac.tolist() == pytest.approx([400 - 4, 200])


@pytest.mark.parametrize("seed", range(20))
def test_bounded_quadratic_problems_meet_the_optimality_conditions(seed):
    rng = numpy.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    root = rng.standard_normal((n, n))
    a, b = plugrad.tensor(root @ root.T + 0.1 * numpy.eye(n)), plugrad.tensor(rng.standard_normal(n) * 3)
    low, high = -rng.random(n), rng.random(n)
    high[rng.random(n) < 0.3] = numpy.inf
    result = optimize.minimize(lambda x: 0.5 * (x @ a @ x) - b @ x, numpy.zeros(n), bounds=list(zip(low, high)), tol=1e-14)
    x, g = result.x.numpy(), result.jac.numpy()
    assert numpy.all(x >= low) and numpy.all(x <= high)
    at_low, at_high = x <= low + 1e-9, x >= high - 1e-9
    assert numpy.all(g[at_low] > -1e-4) and numpy.all(g[at_high] < 1e-4)
    assert numpy.all(abs(g[~at_low & ~at_high]) < 1e-4)


def test_derivatives_may_be_given():
    calls = []
    both = optimize.minimize(lambda x: (rosenbrock(x), func.grad(rosenbrock)(x)), [-1.2, 1], jac=True, method="L-BFGS-B")
    apart = optimize.minimize(rosenbrock, [-1.2, 1], jac=func.grad(rosenbrock), method="L-BFGS-B")
    auto = optimize.minimize(rosenbrock, [-1.2, 1], method="L-BFGS-B")
    assert both.nfev == apart.nfev == auto.nfev == 44 and both.x.tolist() == auto.x.tolist()

    def product(x, p, scale):
        calls.append(scale)
        return func.hessian(lambda x: scale * rosenbrock(x))(x) @ p
    scaled = optimize.minimize(lambda x, scale: scale * rosenbrock(x), [-1.2, 1], args=(2.0,), method="trust-ncg",
                               hessp=product)
    assert scaled.success and set(calls) == {2.0} and len(calls) == scaled.nhev
    exact = optimize.minimize(rosenbrock, [-1.2, 1], method="trust-exact", hess=func.hessian(rosenbrock))
    assert exact.x.tolist() == optimize.minimize(rosenbrock, [-1.2, 1], method="trust-exact").x.tolist()


def test_trust_exact_leaves_a_saddle():
    result = optimize.minimize(lambda x: x[0] ** 2 - x[1] ** 2 + 0.1 * x[1] ** 4, [1.0, 0.0], method="trust-exact")
    assert abs(result.x[1].item()) == pytest.approx(5 ** 0.5, rel=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_points_without_a_finite_value_are_too_far(method):
    result = optimize.minimize(lambda x: (x - plugrad.log(x)).sum(), [0.05, 4.0], method=method)  # NaN below 0
    assert result.success and result.x.tolist() == pytest.approx([1, 1], abs=1e-4)


def test_limits_and_callbacks_end_a_search():
    start = [-1.2, 1]
    limited = optimize.minimize(rosenbrock, start, method="L-BFGS-B", options={"maxiter": 5})
    assert (limited.nit, limited.status, limited.success) == (5, 1, False) and "maxiter" in limited.message
    assert optimize.minimize(rosenbrock, start, method="L-BFGS-B", options={"maxfun": 10}).status == 1
    assert optimize.minimize(rosenbrock, start, options={"maxiter": 3}).nit == 3
    seen = []

    def stop(intermediate_result):
        seen.append((intermediate_result.fun, intermediate_result.x.tolist()))
        if len(seen) == 4:
            raise StopIteration
    for method in METHODS:
        seen.clear()
        result = optimize.minimize(rosenbrock, start, method=method, callback=stop)
        assert len(seen) == 4 and result.status == 99 and not result.success and result.fun == seen[-1][0]
    close, loose = (optimize.minimize(rosenbrock, start, method="BFGS", tol=tol) for tol in (1e-9, 1e-1))
    assert loose.nit < close.nit and close.jac.abs().max().item() <= 1e-9


def test_exceptions_of_the_function_pass_on():
    def fails(x):
        if x[0].item() > 0:
            raise ZeroDivisionError("no value")
        return rosenbrock(x)
    with pytest.raises(ZeroDivisionError, match="no value"):
        optimize.minimize(fails, [-1.2, 1])
    assert optimize.minimize(rosenbrock, [-1.2, 1]).success


# --- Least squares.

T = plugrad.linspace(0, 4, 30, dtype="f64")
NOISE = 0.05 * plugrad.sin(37 * T)


def decay(p):
    return p[0] * plugrad.exp(-p[1] * T) + p[2] - (2 * plugrad.exp(-1.5 * T) + 0.5 + NOISE)


@pytest.mark.parametrize("method", ["lm", "trf"])
@pytest.mark.parametrize("compiled", [False, True])
def test_fits_meet_the_normal_equations(method, compiled):
    result = optimize.least_squares(decay, [1, 1, 0], method=method, compile=compiled, xtol=1e-12, ftol=1e-12)
    assert result.success and result.status in (1, 2, 3, 4)
    jacobian = func.jacfwd(decay)(result.x)
    assert result.jac.shape == (30, 3) and plugrad.allclose(result.jac, jacobian, rtol=1e-9)
    assert (jacobian.T @ decay(result.x)).abs().max().item() < 1e-6
    assert result.optimality == pytest.approx(result.grad.abs().max().item()) and result.active_mask.tolist() == [0, 0, 0]
    assert result.x.tolist() == pytest.approx([2, 1.5, 0.5], abs=0.05)


# x, cost and evaluations of SciPy 1.17.
@pytest.mark.parametrize("options, x, cost, evaluations", [
    ({'loss': 'soft_l1'}, [2.12365025, 2.70955919, 0.539848052], 4.043578178, 9),
    ({'loss': 'huber', 'f_scale': 0.1}, [1.98469527, 1.55906777, 0.503900435], 0.6062777842, 10),
    ({'loss': 'cauchy', 'f_scale': 0.5}, [1.98395325, 1.54216191, 0.502230074], 0.9195273723, 8),
    ({'loss': 'arctan'}, [1.98266824, 1.49815258, 0.497659089], 1.477579087, 6),
    ({'x_scale': 'jac'}, [2.33496799, 3.93945348, 0.467625326], 7.083550875, 24),
    ({'x_scale': [1.0, 0.1, 10.0]}, [2.33487733, 3.93903212, 0.467616678], 7.083550871, 20),
    ({'bounds': ([0, 0, -1], [1.5, math.inf, 0.25])}, [1.5, 2.18049973, 0.25], 8.421902707, 11),
    ({'bounds': ([0, 0, -1], [1.5, math.inf, 0.25]), 'loss': 'soft_l1', 'x_scale': 'jac'}, [1.5, 0.789984181, 0.25],
     4.822563823, 10),
    ({'bounds': (-1, [3, 1.25, 3.0])}, [1.4203736, 1.25, 0.356023762], 8.546960896, 7),
])
def test_losses_scales_and_bounds_are_scipys(options, x, cost, evaluations):
    def wrong(p):
        rest = decay(p)
        return plugrad.cat([rest[:5], rest[5:7] + 3, rest[7:]])
    result = optimize.least_squares(wrong, [1.0, 1.0, 0.0], **options)
    assert result.x.tolist() == pytest.approx(x, rel=1e-5) and result.cost == pytest.approx(cost, rel=1e-7)
    assert result.nfev == evaluations


def test_fewer_residuals_than_variables():
    result = optimize.least_squares(lambda x: x.sum().reshape(1) - 3, [0.0, 1.0, 0.0])
    assert result.cost < 1e-15 and result.jac.shape == (1, 3) and result.x.tolist() == pytest.approx([2 / 3, 5 / 3, 2 / 3])
    with pytest.raises(ValueError, match="at least as many residuals"):
        optimize.least_squares(lambda x: x.sum().reshape(1) - 3, [0.0, 1.0, 0.0], method="lm")


def test_singular_jacobians_end():
    for method in ("lm", "trf"):
        result = optimize.least_squares(lambda x: x.sum() - vector(1, 2), [0.0, 0.0], method=method)
        assert result.cost == pytest.approx(0.25) and result.x.sum().item() == pytest.approx(1.5, abs=1e-4)
        result = optimize.least_squares(lambda x: plugrad.stack([x[0] - 1, 0 * x[1]]), [0.0, 3.0], method=method)
        assert result.x.tolist() == pytest.approx([1, 3])


def test_residuals_may_have_any_shape_and_jacobians_be_given():
    def table(x, y, scale=1.0):
        return scale * (plugrad.outer(x, x) - y)
    y = plugrad.tensor([[1.0, 2.0], [2.0, 4.0]], dtype="f64")
    result = optimize.least_squares(table, [0.5, 1.0], args=(y,), kwargs={"scale": 3.0}, method="lm")
    assert result.x.tolist() == pytest.approx([1, 2]) and result.fun.shape == (4,)
    given = optimize.least_squares(table, [0.5, 1.0], args=(y,), method="lm",
                                   jac=lambda x, y: func.jacfwd(table)(x, y).reshape(4, 2))
    assert given.x.tolist() == pytest.approx([1, 2])
    with pytest.raises(ValueError, match=r"Jacobian has the shape \(2, 2\): expected 4 rows and 2 columns"):
        optimize.least_squares(table, [0.5, 1.0], args=(y,), jac=lambda x, y: plugrad.ones(2, 2))


def test_curve_fit_gives_parameters_and_covariance():
    t = numpy.linspace(0, 3, 12)
    y = 2.5 * numpy.exp(-1.3 * t) + 0.5 + 0.1 * numpy.cos(9 * t)

    def model(t, a, b, c):
        return a * plugrad.exp(-b * t) + c
    sigma = 0.1 + 0.05 * t
    # SciPy 1.17: the parameters, the diagonal of the covariance, and its element 0, 1.
    for options, wanted, variances, covariance in [
            ({}, [2.5411037, 1.3670754, 0.51973143], [0.006018813, 0.01150076, 0.002665716], -0.00022774),
            ({"sigma": sigma}, [2.5321599, 1.4113087, 0.54088208], [0.004795221, 0.01035375, 0.003812062], -0.00297859),
            ({"sigma": sigma, "absolute_sigma": True}, [2.5321599, 1.4113087, 0.54088208],
             [0.01965962, 0.04244866, 0.01562883], -0.0122118),
            ({"bounds": (0, [3, 1.2, 3])}, [2.5481987, 1.2, 0.44656361], [0.007912939, 0.0127821, 0.004647307],
             -0.00139335)]:
        p, made = optimize.curve_fit(model, t, y, **options)
        assert p.tolist() == pytest.approx(wanted, rel=1e-5)
        assert made.diagonal().tolist() == pytest.approx(variances, rel=1e-4)
        assert made[0, 1].item() == pytest.approx(covariance, rel=1e-3)
    assert optimize.curve_fit(model, t[:3], y[:3])[1].isinf().all()
    with pytest.raises(RuntimeError, match="no optimum was found"):
        optimize.curve_fit(model, t, y, max_nfev=2)


def test_a_covariance_matrix_of_the_data_weighs_residuals():
    rng = numpy.random.default_rng(1)
    t = numpy.linspace(0, 2, 8)
    y = 1.5 * t + 0.5 + 0.1 * rng.standard_normal(8)
    root = 0.1 * (numpy.eye(8) + 0.3 * rng.standard_normal((8, 8)))
    sigma, design = root @ root.T, numpy.stack([t, numpy.ones(8)], 1)
    information = design.T @ numpy.linalg.solve(sigma, design)  # generalised least squares
    p, covariance = optimize.curve_fit(lambda t, a, b: a * t + b, t, y, sigma=sigma, absolute_sigma=True)
    assert p.numpy() == pytest.approx(numpy.linalg.solve(information, design.T @ numpy.linalg.solve(sigma, y)))
    assert covariance.numpy() == pytest.approx(numpy.linalg.inv(information))
    scaled = optimize.curve_fit(lambda t, a, b: 1e9 * a * t + 1e-9 * b, t, y)
    plain = optimize.curve_fit(lambda t, a, b: a * t + b, t, y, p0=1.0 * numpy.ones(2), maxfev=50)
    assert scaled[1].diagonal().numpy() == pytest.approx(plain[1].diagonal().numpy() * [1e-18, 1e18], rel=1e-5)
    one = optimize.curve_fit(lambda t, *p: p[0] * t, t, y, p0=2.0)[0]
    assert one.shape == (1,)
    start = optimize.curve_fit(lambda t, a, b: a * t + b, t, y, bounds=([1.2, -5], [1.9, 5]))[0]  # without 1
    assert 1.2 <= start[0].item() <= 1.9


def test_second_derivatives_come_from_what_is_given():
    calls = []

    def hess(x):
        calls.append(1)
        return func.hessian(rosenbrock)(x)

    def opaque(x):  # without a graph
        return rosenbrock(x.detach()).item()
    for options in ({"hess": hess}, {}):
        result = optimize.minimize(opaque, [-1.2, 1], jac=func.grad(rosenbrock), method="trust-ncg", **options)
        assert result.success and result.nfev == 30  # SciPy 1.17
    assert calls
    assert optimize.minimize(opaque, [-1.2, 1], jac=func.grad(rosenbrock), method="trust-exact").success


def test_extreme_scales():
    huge = optimize.least_squares(lambda x: 1e160 * (x - 1), [0.0, 5.0], method="lm")
    assert huge.x.tolist() == pytest.approx([1, 1]) and huge.success
    tiny = optimize.least_squares(lambda x: 1e-170 * (x - 1), [0.0, 5.0], method="lm")
    assert tiny.x.tolist() == pytest.approx([1, 1])
    down = optimize.minimize(lambda x: -x.sum(), [0.0], method="BFGS")
    assert not down.success and "unbounded below" in down.message
    single = optimize.minimize(lambda x: -x.sum(), plugrad.zeros(1), bounds=[(0, 0.1)])
    assert 0.0999 < single.x.item() <= 0.1
    assert optimize.minimize(rosenbrock, [-1.2, 1], options={"maxiter": 0}).nit == 0


def test_arguments_take_scipys_forms():
    assert optimize.minimize(lambda x, a: ((x - a) ** 2).sum(), [0.0], args=3.0).x.tolist() == pytest.approx([3])
    assert optimize.minimize(rosenbrock, [-1.2, 1], jac="2-point").success

    class TheirBounds:
        lb, ub = numpy.array([0.0, 0.0]), numpy.array([0.5, 1.0])
    for bounds in (TheirBounds(), numpy.array([[0, 0.5], [0, 1]]), [(0, 0.5), numpy.array([0, 1])]):
        assert optimize.minimize(rosenbrock, [0.2, 0.1], bounds=bounds).x.tolist() == pytest.approx([0.5, 0.25])


# --- What is refused.

@pytest.mark.parametrize("call, error, message", [
    (lambda: optimize.minimize(rosenbrock, [0, 0], method="Nelder-Mead"), ValueError, "'nelder-mead' is unknown.*'bfgs'"),
    (lambda: optimize.minimize(rosenbrock, [0, 0], options={"maxit": 3}), ValueError, "no option 'maxit'.*maxiter"),
    (lambda: optimize.minimize(rosenbrock, [0, 0], options={"maxcor": 0}), ValueError, "maxcor"),
    (lambda: optimize.minimize(rosenbrock, [0, 0], options={"gtol": "small"}), TypeError, "'gtol' is of type str"),
    (lambda: optimize.minimize(rosenbrock, [0, 0], constraints=[{}]), ValueError, "constraints are not supported"),
    (lambda: optimize.minimize(rosenbrock, [0, 0], bounds=[(0, 1)]), ValueError, r"2 pairs \(lower, upper\)"),
    (lambda: optimize.minimize(rosenbrock, [0, 0], bounds=[(0, 1), (2, 1)]), ValueError, "element 1 .*lower <= upper"),
    (lambda: optimize.minimize(rosenbrock, [0, 0], method="BFGS", bounds=[(0, 1)] * 2), ValueError, "L-BFGS-B"),
    (lambda: optimize.minimize(lambda x: x, [0, 0]), TypeError, r"fun returned a tensor of shape \(2,\)"),
    (lambda: optimize.minimize(lambda x: 1.0, [0, 0]), TypeError, "fun returned a float"),
    (lambda: optimize.minimize(lambda x: (1 / x).sum(), [0.0, 0]), ValueError, "at x0 is not finite"),
    (lambda: optimize.minimize(lambda x: x ** 2, [0.0], jac=True), TypeError, "must return two values"),
    (lambda: optimize.minimize(lambda x: (x.sum(),), [0.0], jac=True), TypeError, "must return two values"),
    (lambda: optimize.minimize(lambda x: x.sum(), [0.0], jac=True), TypeError, "must return two values"),
    (lambda: optimize.minimize(rosenbrock, [0, 0], jac="forward"), ValueError, "jac is 'forward'"),
    (lambda: optimize.minimize(rosenbrock, [0, 0], method=min), ValueError, "method is <built-in function min>"),
    (lambda: optimize.minimize(rosenbrock, [0, 0], options={"maxiter": 1.5}), TypeError, "a whole number"),
    (lambda: optimize.curve_fit(lambda t, a: a * t, [1.0, 2], [[1.0], [2]]), ValueError, r"shape \(2,\).*\(2, 1\)"),
    (lambda: optimize.curve_fit(lambda t, a: a * t, [1.0, 2], [1.0, 2], sigma=[[1.0], [2]]), ValueError, "sigma has"),
    (lambda: optimize.curve_fit(lambda t, *p: t, [1.0], [1.0]), ValueError, "give p0"),
    (lambda: optimize.curve_fit(lambda t, a: a * t, [1.0, math.nan], [1.0, 2]), ValueError, "NaN or infinite"),
    (lambda: optimize.minimize(rosenbrock, []), ValueError, "expected a floating tensor with elements"),
    (lambda: optimize.minimize(rosenbrock, [0, 0], jac=lambda x: x[:1]), ValueError, r"gradient has the shape \(1,\)"),
    (lambda: optimize.least_squares(decay, [1, 1, 1], method="dogbox"), ValueError, "'dogbox' is unknown"),
    (lambda: optimize.least_squares(decay, [1, 1, 1], loss="square"), ValueError, "'square' is unknown.*'soft_l1'"),
    (lambda: optimize.least_squares(decay, [1, 1, 1], bounds=(2, 3)), ValueError, "x0 is not within the bounds"),
    (lambda: optimize.least_squares(decay, [1, 1, 1], method="lm", loss="huber"), ValueError, "linear loss only"),
    (lambda: optimize.least_squares(decay, [1, 1, 1], method="lm", bounds=(0, 3)), ValueError, "no bounds"),
    (lambda: optimize.least_squares(decay, [1, 1, 1], x_scale="rows"), ValueError, "'rows' is unknown"),
    (lambda: optimize.least_squares(decay, [1, 1, 1], x_scale=0.0), ValueError, "above 0"),
    (lambda: optimize.least_squares(decay, [1, 1, 1], f_scale=-1), ValueError, "f_scale"),
    (lambda: optimize.least_squares(lambda x: 3, [1]), TypeError, "fun returned a int"),
])
def test_senseless_calls_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_results_are_dicts_with_attributes():
    result = optimize.minimize(rosenbrock, [-1.2, 1])
    assert result["x"] is result.x and "nfev" in dir(result) and "message: 'CONVERGENCE" in repr(result)
    result.note = "kept"
    assert result["note"] == "kept" and result.copy().note == "kept"
    assert copy.copy(result).fun == pickle.loads(pickle.dumps(result)).fun == result.fun
    with pytest.raises(AttributeError, match="no 'hess_inv': it has message"):
        result.hess_inv
