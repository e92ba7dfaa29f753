"""Counts the evaluations of plugrad.optimize beside SciPy's, on small problems of CUTEst. Both take values and derivatives
from the same functions.

optimize.py [--times]: also the times of a fit and of a network's training, beside SciPy with NumPy's functions.
"""
import sys
import time
from pathlib import Path

import numpy
import scipy.optimize

import plugrad
from plugrad import func, optimize

sys.path.append(str(Path(__file__).parents[2] / "python/tests"))
from minimization_problems import PROBLEMS  # noqa: E402

tensor = plugrad.tensor


def numpys(function):
    """The function of an array, and results as arrays."""
    def of(x, *more):
        made = function(*(tensor(each, dtype="f64") for each in (x, *more)))
        return made.item() if made.ndim == 0 else made.numpy()
    return of


def searches(residuals, start):
    """Pairs of results, plugrad's and SciPy's, by method."""
    def value(x):
        return (residuals(x) ** 2).sum()
    gradient, jacobian = func.grad(value), func.jacfwd(residuals)
    bounds = [(s - 5, s + 0.25) for s in start]
    for method in ("L-BFGS-B", "BFGS"):
        yield method, optimize.minimize(value, start, method=method), scipy.optimize.minimize(
            numpys(value), start, jac=numpys(gradient), method=method)
    yield "bounds", optimize.minimize(value, start, bounds=bounds), scipy.optimize.minimize(
        numpys(value), start, jac=numpys(gradient), bounds=bounds)
    yield "trust-ncg", optimize.minimize(value, start, method="trust-ncg"), scipy.optimize.minimize(
        numpys(value), start, jac=numpys(gradient), method="trust-ncg",
        hessp=numpys(lambda x, p: func.jvp(func.grad(value), (x,), (p,))[1]))
    yield "trust-exact", optimize.minimize(value, start, method="trust-exact"), scipy.optimize.minimize(
        numpys(value), start, jac=numpys(gradient), method="trust-exact", hess=numpys(func.hessian(value)))
    for method in ("lm", "trf"):
        if method == "trf" or len(residuals(tensor(start, dtype="f64"))) >= len(start):
            yield method, optimize.least_squares(residuals, start, method=method), scipy.optimize.least_squares(
                numpys(residuals), start, jac=numpys(jacobian), method=method)
    low, high = [b[0] for b in bounds], [b[1] for b in bounds]
    yield "trf, bounds", optimize.least_squares(residuals, start, bounds=(low, high)), scipy.optimize.least_squares(
        numpys(residuals), start, jac=numpys(jacobian), bounds=(low, high))


def main():
    totals = {}
    print(f"{'problem':10} {'method':12} {'evaluations':>12} {'SciPy':>7} {'value':>13} {'SciPy':>13}")
    for name, residuals, start in PROBLEMS:
        for method, ours, theirs in searches(residuals, [float(s) for s in start]):
            value, wanted = (float(each["cost"] if "cost" in each else each["fun"]) for each in (ours, theirs))
            agree = numpy.isclose(value, wanted, rtol=1e-3, atol=1e-6)
            totals.setdefault(method, []).append((ours.nfev, theirs.nfev, agree))
            print(f"{name:10} {method:12} {ours.nfev:12} {theirs.nfev:7} {value:13.6g} {wanted:13.6g}")
    print("where both find the same value:")
    for method, counts in totals.items():
        same = [(ours, theirs) for ours, theirs, agree in counts if agree]
        print(f"{method:12} {len(same)} of {len(counts)} problems, {sum(a for a, _ in same)} evaluations, SciPy "
              f"{sum(b for _, b in same)}; worst ratio {max(a / b for a, b in same):.2f}")
    if "--times" in sys.argv:
        times()


def median_ms(run, rounds=15):
    run()
    spent = []
    for _ in range(rounds):
        begin = time.perf_counter()
        run()
        spent.append(1e3 * (time.perf_counter() - begin))
    return sorted(spent)[rounds // 2]


def fits():
    """Fits a sum of exponentials to 200 points."""
    t = numpy.linspace(0, 4, 200)
    y = 2 * numpy.exp(-0.5 * t) + 1.5 * numpy.exp(-2 * t) + 0.3
    t_, y_ = tensor(t), tensor(y)

    def residuals(p):
        return p[0] * plugrad.exp(-p[1] * t_) + p[2] * plugrad.exp(-p[3] * t_) + p[4] - y_

    def numpy_residuals(p):
        return p[0] * numpy.exp(-p[1] * t) + p[2] * numpy.exp(-p[3] * t) + p[4] - y
    start = [1.0, 1.0, 1.0, 3.0, 0.0]
    return {"fit, plugrad": lambda: optimize.least_squares(residuals, start, method="lm"),
            "fit, SciPy with differences": lambda: scipy.optimize.least_squares(numpy_residuals, start, method="lm")}


def trainings():
    """Trains a network of 1,185 weights on 200 points, by 500 iterations of L-BFGS."""
    plugrad.manual_seed(0)
    x = plugrad.randn(200, 2, dtype="f64")
    y = plugrad.sin(3 * x[:, :1]) * x[:, 1:]
    sizes = [(2, 32), (32, 32), (32, 1)]
    start = 0.3 * plugrad.randn(sum(a * b + b for a, b in sizes), dtype="f64")

    def loss(p):
        at, h = 0, x
        for i, (a, b) in enumerate(sizes):
            h = h @ p[at:at + a * b].reshape(a, b) + p[at + a * b:at + a * b + b]
            h = h if i == 2 else plugrad.tanh(h)
            at += a * b + b
        return ((h - y) ** 2).mean()
    derivative = func.grad_and_value(loss)

    def of_scipy(p):
        gradient, value = derivative(tensor(p))
        return value.item(), gradient.numpy()
    options = {"maxiter": 500, "ftol": 0}
    return {"network, plugrad": lambda: optimize.minimize(loss, start, method="L-BFGS-B", options=options),
            "network, plugrad, compiled": lambda: optimize.minimize(loss, start, method="L-BFGS-B", options=options,
                                                                    compile=True),
            "network, SciPy": lambda: scipy.optimize.minimize(of_scipy, start.numpy(), jac=True, method="L-BFGS-B",
                                                              options=options)}


def times():
    for name, run in (fits() | trainings()).items():
        print(f"{name:28} {median_ms(run):8.2f} ms  {run().nfev} evaluations")


main()
