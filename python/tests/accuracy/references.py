"""Functions and derivatives in 50 digits that mpmath lacks, or does not compute over the whole range of f64."""
import mpmath as mp
from mpmath import mpf

DIGITS = 50
mp.mp.dps = DIGITS
INF, ZERO, ONE = mp.inf, mpf(0), mpf(1)
# Beyond these exponents e^x is outside the range of f64, and takes long to compute.
LARGE = 10000
# G. Klambauer et al., "Self-normalizing neural networks", 2017.
SELU_ALPHA, SELU_SCALE = mpf("1.6732632423543772848170429916717"), mpf("1.0507009873554804934193349852946")


def exp(x):
    return INF if x > LARGE else mpf("1e-5000") if x < -LARGE else mp.exp(x)


def expm1(x):
    return INF if x > LARGE else -ONE if x < -LARGE else mp.expm1(x)


def sinh(x):
    return (expm1(x) - expm1(-x)) / 2


def cosh(x):
    return (exp(x) + exp(-x)) / 2


def tanh(x):
    less = expm1(-2 * abs(x))
    return -mp.sign(x) * less / (less + 2)


def tanhshrink(x):
    """Uses the first terms of the series near 0, where the difference would lose all digits."""
    return x ** 3 / 3 - 2 * x ** 5 / 15 + 17 * x ** 7 / 315 if abs(x) < mpf("1e-8") else x - tanh(x)


def power(a, b):
    return exp(b * mp.log(a))


def logaddexp(a, b):
    return max(a, b) + softplus(-abs(a - b))


def towards_zero(x):
    return mp.floor(x) if x > 0 else mp.ceil(x)


def fmod(a, b):
    return a - b * towards_zero(a / b)


def sigmoid(x):
    return exp(x) if x < -LARGE else 1 / (1 + exp(-x))


def softplus(x):
    return x if x > LARGE else mp.log1p(exp(x))


def erfc(x):
    return mpf("1e-5000") if x > 200 else mpf(2) if x < -200 else mp.erfc(x)


def erfcx(x):
    """e^(x^2) erfc(x); above 1000 by its asymptotic series (DLMF 7.12.1)."""
    if x < -200:
        return INF
    if x < 1000:
        return mp.exp(x * x) * mp.erfc(x)
    term, total = ONE, ONE
    for n in range(1, 25):
        term *= -(2 * n - 1) / (2 * x * x)
        total += term
    return total / (x * mp.sqrt(mp.pi))


def erfcx_slope(x):
    """2 x erfcx(x) - 2 / sqrt(pi). For large x the leading terms cancel, and the rest of the asymptotic series remains."""
    if x < 1000:
        return 2 * x * erfcx(x) - 2 / mp.sqrt(mp.pi)
    term, total = ONE, ONE
    for n in range(1, 25):
        term *= -(2 * n + 1) / (2 * x * x)
        total += term
    return -total / (mp.sqrt(mp.pi) * x * x)


def density(x):
    """The density of the normal distribution."""
    return exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def ndtr(x):
    return erfc(-x / mp.sqrt(2)) / 2


def log_ndtr(x):
    if x > -10:
        return mp.log1p(-ndtr(-x)) if x > 0 else mp.log(ndtr(x))
    return -x * x / 2 + mp.log(erfcx(-x / mp.sqrt(2)) / 2)


def hazard(x):
    """The derivative of log_ndtr: the density divided by the distribution function."""
    return density(x) / ndtr(x) if x > -10 else mp.sqrt(2 / mp.pi) / erfcx(-x / mp.sqrt(2))


def ndtri(p):
    """Newton's method on log_ndtr, whose slope does not vanish in the lower half."""
    if p > 0.5:
        return -ndtri(1 - p)
    if p == 0.5:
        return ZERO
    wanted = mp.log(p)
    x = -mp.sqrt(-2 * wanted) if p < 0.02 else (p - 0.5) * 2.5
    for _ in range(60):
        step = (log_ndtr(x) - wanted) / hazard(x)
        x -= step
        if abs(step) < abs(x) * mpf(10) ** (-DIGITS + 5):
            break
    return x


def erfinv(x):
    """Uses ndtri from |x| = 0.5 on, where 1 - |x| is exact."""
    if abs(x) < 0.5:
        y = x * mp.sqrt(mp.pi) / 2
        for _ in range(60):
            step = (mp.erf(y) - x) / erfinv_slope_at(y)
            y -= step
            if abs(step) <= abs(y) * mpf(10) ** (-DIGITS + 5):
                break
        return y
    return mp.sign(x) * -ndtri((1 - abs(x)) / 2) / mp.sqrt(2)


def erfinv_slope_at(y):
    return 2 / mp.sqrt(mp.pi) * mp.exp(-y * y)


def lgamma(x):
    if x == mp.floor(x) and x <= 0:
        return INF
    if x < 0.5:
        return mp.log(mp.pi / abs(mp.sinpi(x))) - mp.loggamma(1 - x).real
    return mp.loggamma(x).real


def digamma(x):
    if x < 0.5:
        return mp.digamma(1 - x) - mp.pi * mp.cospi(x) / mp.sinpi(x)
    return mp.digamma(x)


def polygamma(n, x):
    """The n-th derivative of digamma, n >= 1; above 1000 by its asymptotic series (DLMF 5.15.8), below 0 by reflection."""
    if x <= 0:
        if x == mp.floor(x):
            return INF if n % 2 else -INF
        # The reflection adds the n-th derivative of pi cot(pi x); mpmath would compute it as a sum of two zetas.
        return (-1) ** n * (polygamma(n, 1 - x) + cotangent_slope(n, x))
    if x < 1000:
        return mp.psi(n, x)
    total = mp.factorial(n - 1) / x ** n + mp.factorial(n) / (2 * x ** (n + 1))
    for k in range(1, 25):
        total += mp.bernoulli(2 * k) * mp.factorial(2 * k + n - 1) / (mp.factorial(2 * k) * x ** (2 * k + n))
    return (-1) ** (n + 1) * total


def cotangent_slope(n, x):
    """pi times the n-th derivative of -cot(pi x), n = 1 or 2, with the sign that the reflection needs."""
    sine = mp.sinpi(x)
    if n == 1:
        return -mp.pi ** 2 / sine ** 2
    return -2 * mp.pi ** 3 * mp.cospi(x) / sine ** 3


def bessel(order, x):
    """e^-|x| I_order(x); above 200 by its asymptotic series (DLMF 10.40.1)."""
    size, sign = abs(x), -1 if order == 1 and x < 0 else 1
    if size < 200:
        return sign * mp.besseli(order, size) * mp.exp(-size)
    term, total = ONE, ONE
    for k in range(1, 200):
        term *= -(4 * order * order - (2 * k - 1) ** 2) / (8 * k * size)
        total += term
        if abs(term) < mpf(10) ** -DIGITS:
            break
    return sign * total / mp.sqrt(2 * mp.pi * size)


def i0(x):
    return bessel(0, x) * exp(abs(x))


def i1(x):
    return bessel(1, x) * exp(abs(x))


def i1_slope(x):
    return mpf(0.5) if abs(x) < mpf("1e-100") else (bessel(0, x) - bessel(1, x) / x) * exp(abs(x))


def i1e_slope(x):
    if abs(x) < mpf("1e-100"):
        return mpf(0.5)
    return bessel(0, x) - bessel(1, x) * (mp.sign(x) + 1 / x)


def sinc(x):
    return ONE if x == 0 else mp.sinpi(x) / (mp.pi * x)


def sinc_slope(x):
    if abs(x) < mpf("1e-20"):
        return -mp.pi ** 2 * x / 3
    return (mp.cospi(x) - mp.sinpi(x) / (mp.pi * x)) / x


def mish(x):
    return x * tanh(softplus(x))


def mish_slope(x):
    inner = softplus(x)
    return tanh(inner) + x * sigmoid(x) / mp.cosh(inner) ** 2 if x < LARGE else ONE


def gelu_tanh(x):
    """0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) = x sigmoid(2 inner), without its cancellation."""
    return x * sigmoid(2 * gelu_inner(x))


def gelu_inner(x):
    return mp.sqrt(2 / mp.pi) * (x + mpf("0.044715") * x ** 3)


def gelu_tanh_slope(x):
    z = 2 * gelu_inner(x)
    slope = 2 * mp.sqrt(2 / mp.pi) * (1 + 3 * mpf("0.044715") * x * x)
    return sigmoid(z) + x * sigmoid(z) * sigmoid(-z) * slope
