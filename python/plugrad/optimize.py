"""Minimises functions and sums of squares, with SciPy's names and stopping rules, and derivatives from plugrad.func.

x may have any shape. The algorithms compute in f64 on the host and call the functions with tensors of x0's shape, dtype and
device. f64 is advisable, because most tolerances lie below f32's resolution; lists, numbers and arrays become f64.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from . import _plugrad, func, linalg
from ._compile import compile as _compile
from ._plugrad import Tensor
from .array_api import finfo

__all__ = ["Bounds", "OptimizeResult", "curve_fit", "least_squares", "minimize"]


class OptimizeResult(dict[str, Any]):
    """The results of a search by name, also as attributes: x, fun, success, message, nfev and others."""

    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__

    def copy(self) -> "OptimizeResult":
        return OptimizeResult(self)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the result has no '{name}': it has {', '.join(self)}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        lines = (f"{name:>{width}}: " + repr(value).replace("\n", "\n" + " " * (width + 2)) for name, value in self.items())
        return "\n".join(lines)


class Bounds:
    """lb <= x <= ub: numbers, or sequences and tensors with an element for each element of x. keep_feasible has no effect:
    all points lie within the bounds."""

    def __init__(self, lb: Any = -math.inf, ub: Any = math.inf, keep_feasible: Any = False) -> None:
        self.lb, self.ub, self.keep_feasible = lb, ub, keep_feasible

    def __repr__(self) -> str:
        return f"Bounds({self.lb!r}, {self.ub!r})"


def _start(x0: Any) -> Tensor:
    """Numbers as a floating tensor, in f64 unless they are one."""
    given = x0.detach() if isinstance(x0, Tensor) else Tensor(x0, dtype="f64", requires_grad=False)
    return given if given.is_floating_point() else given.to("f64")


def _limits(bounds: Any, x0: Tensor, name: str) -> tuple[Tensor | None, Tensor | None]:
    """The bounds as tensors of one element or of x's elements."""
    if bounds is None:
        return None, None
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):  # also SciPy's Bounds
        return _start(bounds.lb), _start(bounds.ub)
    pairs = list(bounds)
    if name != "minimize" and len(pairs) == 2:
        return _start(pairs[0]), _start(pairs[1])
    if len(pairs) != x0.numel() or any(not hasattr(pair, "__len__") or len(pair) != 2 for pair in pairs):
        raise ValueError(f"[{name}] bounds must be Bounds(lb, ub)"
                         + (", or (lb, ub)" if name != "minimize" else f", or {x0.numel()} pairs (lower, upper)"))
    return (_start([-math.inf if low is None else float(low) for low, _ in pairs]),
            _start([math.inf if high is None else float(high) for _, high in pairs]))


def _watched(callback: Any) -> Any:
    """The core's callback: calls callback(x), or callback(intermediate_result=) if it has this parameter alone."""
    if callback is None:
        return None
    takes_result = list(inspect.signature(callback).parameters) == ["intermediate_result"]

    def watch(x: Tensor, value: float) -> bool:
        try:
            if takes_result:
                callback(intermediate_result=OptimizeResult(x=x, fun=value))
                return False
            return callback(x) is True
        except StopIteration:
            return True
    return watch


def _of_number(made: Any, name: str) -> Tensor:
    """The tensor of one element that a function returned, as a tensor of rank 0."""
    if not isinstance(made, Tensor) or made.numel() != 1:
        what = f"a tensor of shape {made.shape}" if isinstance(made, Tensor) else f"a {type(made).__name__}"
        raise TypeError(f"[{name}] fun returned {what}: expected a tensor of one element, computed from x")
    return made.reshape(())


_DIFFERENCES = ("2-point", "3-point", "cs")  # of SciPy; autograd is exact


def _given(jac: Any, name: str) -> Any:
    """A function of the derivatives, True, or None for derivatives from autograd."""
    if jac is None or jac is False or (isinstance(jac, str) and jac in _DIFFERENCES):
        return None
    if jac is not True and not callable(jac):
        raise ValueError(f"[{name}] jac is {jac!r}: expected a function, or None for derivatives from autograd")
    return jac


def _pair(made: Any) -> tuple[Any, Any]:
    if not isinstance(made, tuple | list) or len(made) != 2:
        raise TypeError("[minimize] with jac=True, fun must return two values: the value and its gradient")
    return made[0], made[1]


def _derivatives(fun: Callable[..., Any], args: tuple[Any, ...], jac: Any, hess: Callable[..., Any] | None,
                 hessp: Callable[..., Any] | None) -> tuple[Callable[..., Any], ...]:
    """Functions of x: the value with the gradient, the second derivatives, and (of x and p) their product with p."""
    both = func.grad_and_value(lambda x: _of_number(fun(x, *args), "minimize"))

    def evaluate(x: Tensor) -> tuple[Any, Any]:
        if jac is True:
            return _pair(fun(x, *args))
        return (fun(x, *args), jac(x, *args)) if jac else _pair(both(x)[::-1])

    def gradient(x: Tensor) -> Any:
        if jac is True:
            return _pair(fun(x, *args))[1]
        return jac(x, *args) if jac else both(x)[0]

    def second(x: Tensor) -> Any:
        return hess(x, *args) if hess else func.jacfwd(gradient)(x)

    def product(x: Tensor, p: Tensor) -> Any:
        if hessp:
            return hessp(x, p, *args)
        if hess:
            return hess(x, *args).reshape(x.numel(), x.numel()) @ p.reshape(-1)
        return func.jvp(gradient, (x,), (p,))[1]
    return evaluate, second, product


_TOLERANCES = {"bfgs": ("gtol",), "l-bfgs-b": ("ftol", "gtol"), "trust-ncg": ("gtol",), "trust-exact": ("gtol",)}


def minimize(fun: Callable[..., Any], x0: Any, args: tuple[Any, ...] = (), method: str | None = None, jac: Any = None,
             hess: Callable[..., Any] | None = None, hessp: Callable[..., Any] | None = None, bounds: Any = None,
             constraints: Any = (), tol: float | None = None, callback: Callable[..., Any] | None = None,
             options: Mapping[str, Any] | None = None, *, compile: bool = False) -> OptimizeResult:  # noqa: A002
    """Minimises fun(x, *args), a tensor of one element, from x0, as scipy.optimize.minimize.

    method: "BFGS" (by default without bounds), "L-BFGS-B" (by default with bounds, the only method that takes bounds),
    "trust-ncg" or "trust-exact". jac: by default from autograd; a function of the gradient; or True if fun returns value and
    gradient. hess(x, *args): the second derivatives (n, n), for trust-exact; hessp(x, p, *args): their product with p, for
    trust-ncg, by default from hess; without them both come from forward mode over the gradient. bounds: Bounds, or a pair
    (lower, upper) with numbers or None for each element. tol: sets all tolerances. callback(x), or
    callback(intermediate_result), is called after each iteration; StopIteration, or the result True, ends the search.
    options: gtol, ftol, xrtol, maxiter, maxfun, maxcor, maxls, initial_trust_radius, max_trust_radius, eta, with SciPy's
    meaning and defaults; disp prints the message. compile: records fun and its derivatives with plugrad.compile, for speed;
    fun must then not read elements.

    Returns x, fun, jac, success, status, message, nit, nfev, njev and nhev. Raises ValueError for unknown methods and
    options, for constraints, for wrong shapes, and if the value at x0 is not finite.
    """
    start = _start(x0)
    if constraints:
        raise ValueError("[minimize] constraints are not supported: put them into fun, or use bounds")
    if method is not None and not isinstance(method, str):
        raise ValueError(f"[minimize] method is {method!r}: expected a name, or None")
    name = method.lower() if method else ("bfgs" if bounds is None else "l-bfgs-b")
    given, rest = dict(options or {}), args if isinstance(args, tuple) else (args,)
    shown = given.pop("disp", False)
    if tol is not None:
        given = dict.fromkeys(_TOLERANCES.get(name, ()), tol) | given
    functions = _derivatives(fun, rest, _given(jac, "minimize"), hess, hessp)
    evaluate, second, product = (_compile(each) if compile else each for each in functions)
    result = OptimizeResult(_plugrad._minimize(start, evaluate, second, product, name, *_limits(bounds, start, "minimize"),
                                               given, _watched(callback)))
    if shown:
        print(result.message)
    return result


def _jacobian(residuals: Callable[[Tensor], Tensor], given: Callable[[Tensor], Any] | None,
              compiled: bool) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Any]]:
    """The residuals, and their Jacobian, by the mode that takes fewer passes."""
    def backward(x: Tensor) -> Any:
        return func.jacrev(residuals)(x).reshape(-1, x.numel())

    def forward(x: Tensor) -> Any:
        return func.jacfwd(residuals)(x).reshape(-1, x.numel())
    run, by_rows, by_columns = (_compile(each) if compiled else each
                                for each in (residuals, given or backward, given or forward))
    count = 0

    def value(x: Tensor) -> Tensor:
        nonlocal count
        made: Tensor = run(x)
        count = made.numel()
        return made

    def jacobian(x: Tensor) -> Any:
        return by_rows(x) if count < x.numel() else by_columns(x)
    return value, jacobian


def least_squares(fun: Callable[..., Any], x0: Any, jac: Any = None, bounds: Any = (-math.inf, math.inf),
                  method: str = "trf", ftol: float | None = 1e-8, xtol: float | None = 1e-8, gtol: float | None = 1e-8,
                  x_scale: Any = None, loss: str = "linear", f_scale: float = 1.0, max_nfev: int | None = None,
                  verbose: int = 0, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None,
                  callback: Callable[..., Any] | None = None, *, compile: bool = False) -> OptimizeResult:  # noqa: A002
    """Minimises half the sum of rho(fun(x, *args, **kwargs)^2), from x0, as scipy.optimize.least_squares.

    fun: the residuals, a tensor of any shape with m elements. jac: by default from plugrad.func; or a function of x that
    returns (m, n). method: "trf", a reflective trust region, or "lm", Levenberg-Marquardt with MINPACK's rules, for m >= n,
    without bounds and losses. bounds: (lb, ub) of numbers, sequences or tensors, or Bounds. x_scale: a number, a scale for
    each element, or "jac"; by default "jac" for lm and 1 for trf. loss: "linear", "soft_l1", "huber", "cauchy" or "arctan".
    ftol, xtol, gtol: None switches a test off. callback(x), or callback(intermediate_result), is called after each
    iteration; StopIteration ends the search. verbose: 1 or 2 prints the message. compile: records fun and its derivatives
    with plugrad.compile, for speed; fun must then not read elements.

    Returns x, cost, fun, jac (scaled by the loss, as SciPy does), grad, optimality, active_mask, success, status, message,
    nfev and njev. Raises ValueError for unknown methods and losses, for wrong shapes, and for residuals at x0 that are not
    finite.
    """
    start, further, args = _start(x0), dict(kwargs or {}), args if isinstance(args, tuple) else (args,)
    given = _given(jac, "least_squares")

    def residuals(x: Tensor) -> Tensor:
        made = fun(x, *args, **further)
        if not isinstance(made, Tensor):
            raise TypeError(f"[least_squares] fun returned a {type(made).__name__}: expected a tensor, computed from x")
        return made.reshape(-1)
    value, jacobian = _jacobian(residuals, (lambda x: given(x, *args, **further)) if given else None, compile)
    by_jacobian = isinstance(x_scale, str) and x_scale == "jac"
    if isinstance(x_scale, str) and not by_jacobian:
        raise ValueError(f"[least_squares] x_scale '{x_scale}' is unknown: expected 'jac', or scales")
    result = OptimizeResult(_plugrad._least_squares(
        start, value, jacobian, method, *_limits(bounds, start, "least_squares"),
        tuple(0.0 if each is None else each for each in (ftol, xtol, gtol)),
        None if by_jacobian or x_scale is None else _start(x_scale), by_jacobian and method != "lm", loss, f_scale, max_nfev,
        _watched(callback)))
    if verbose:
        print(result.message)
    return result


def _spread(limit: Tensor | None, outer: float, count: int) -> list[float]:
    """A bound of each element."""
    if limit is None or limit.numel() == 1:
        return [outer if limit is None else limit.item()] * count
    made: list[float] = limit.reshape(-1).tolist()
    return made


def _between(lower: Tensor | None, upper: Tensor | None, count: int) -> Tensor:
    """A start within bounds: 1 without bounds, else the middle, or 1 from the only bound."""
    def start(low: float, high: float) -> float:
        if math.isfinite(low):
            return 0.5 * (low + high) if math.isfinite(high) else low + 1
        return high - 1 if math.isfinite(high) else 1.0
    return _start([start(*each) for each in zip(_spread(lower, -math.inf, count), _spread(upper, math.inf, count),
                                                strict=True)])


def _weighted(sigma: Any, y: Tensor) -> Callable[[Tensor], Tensor]:
    """Divides rows, one for each element of y, by standard deviations, or by the factor of a covariance matrix."""
    if sigma is None:
        return lambda rows: rows
    given, m = _start(sigma), y.numel()
    if given.shape == (m, m) and y.ndim == 1:
        factor = linalg.cholesky(given)
        return lambda rows: linalg.solve_triangular(factor, rows.reshape(m, -1), upper=False).reshape(rows.shape)
    if given.numel() != 1 and given.shape != y.shape:
        raise ValueError(f"[curve_fit] sigma has the shape {given.shape}: expected a number, ydata's shape {y.shape}, or a "
                         "covariance matrix of a vector ydata")
    flat = given.reshape(-1)
    return lambda rows: rows / (flat if rows.ndim == 1 else flat.reshape(-1, 1))


def _count_of_parameters(f: Callable[..., Any]) -> int:
    parameters = list(inspect.signature(f).parameters.values())
    if len(parameters) < 2 or any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        raise ValueError("[curve_fit] f's signature does not tell the number of parameters: give p0")
    return len(parameters) - 1


def _covariance(jacobian: Tensor) -> Tensor | None:
    """The inverse of J^T J by the singular values of J with columns of length 1, or None if J has no full rank."""
    m, n = jacobian.shape
    lengths = linalg.norm(jacobian, dim=0)
    if m < n or lengths.min().item() == 0:
        return None
    values, vectors = linalg.svd(jacobian / lengths, full_matrices=False)[1:]
    if values[-1].item() <= finfo(jacobian.dtype).eps * max(m, n) * values[0].item():
        return None
    scaled = vectors / values.reshape(-1, 1) / lengths
    return scaled.T @ scaled


def curve_fit(f: Callable[..., Any], xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None,
              absolute_sigma: bool = False, check_finite: bool = True, bounds: Any = (-math.inf, math.inf),
              method: str | None = None, jac: Any = None, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Fits parameters p so that f(xdata, *p) comes close to ydata, as scipy.optimize.curve_fit.

    f returns a tensor of ydata's shape. p0: a number for each parameter, by default 1, or a point within the bounds. sigma:
    the standard deviations of ydata, a number or in ydata's shape, or the covariance matrix of a vector ydata;
    absolute_sigma: whether pcov uses their size, or scales them by the residuals. method: by default "lm", and "trf" with
    bounds. jac(xdata, *p): the derivatives (m, n). kwargs: for least_squares; maxfev is max_nfev. Returns p (n) and its
    covariance pcov (n, n), infinite where the data do not determine it. Raises ValueError for wrong shapes and for data that
    are not finite, and RuntimeError if the search fails.
    """
    x, y = _start(xdata), _start(ydata)
    if check_finite and not (bool(x.isfinite().all()) and bool(y.isfinite().all())):
        raise ValueError("[curve_fit] xdata or ydata have elements that are NaN or infinite")
    start = _start([1.0] * _count_of_parameters(f) if p0 is None else p0).reshape(-1)
    lower, upper = _limits(bounds, start, "curve_fit")
    if p0 is None:
        start = _between(lower, upper, start.numel())
    weighted, given = _weighted(sigma, y), _given(jac, "curve_fit")

    def residuals(p: Tensor) -> Tensor:
        made: Tensor = f(x, *p.unbind(0))
        if made.shape != y.shape and made.numel() != 1:
            raise ValueError(f"[curve_fit] f returned a tensor of shape {made.shape}: expected ydata's shape {y.shape}")
        return weighted((made - y).reshape(-1))

    def jacobian(p: Tensor) -> Tensor:
        return weighted(given(x, *p.unbind(0)).reshape(-1, p.numel()))
    is_open = all(each is None or bool(each.isinf().all()) for each in (lower, upper))
    further = {"max_nfev" if name == "maxfev" else name: value for name, value in kwargs.items()}
    result = least_squares(residuals, start, jac=jacobian if given else None, bounds=bounds,
                           method=method or ("lm" if is_open else "trf"), **further)
    if not result.success:
        raise RuntimeError(f"[curve_fit] no optimum was found: {result.message}")
    m, n = result.jac.shape
    covariance = _covariance(result.jac)
    if covariance is None or (not absolute_sigma and m <= n):
        return result.x, _plugrad.full((n, n), math.inf, dtype=result.x.dtype, device=result.x.device)
    return result.x, covariance if absolute_sigma else covariance * (2 * result.cost / (m - n))
