"""Functions of one or two numbers: their values and derivatives in 50 digits, and the points that are hard to compute."""
import dataclasses
import typing

import mpmath as mp

from . import references as r
from .references import ONE, ZERO

LN2, LN10 = mp.log(2), mp.log(10)


@dataclasses.dataclass(frozen=True)
class Curve:
    """A function, with a derivative for each of its numbers. The unit of errors is an ulp of the result, or of `least` if
    `least` is larger: a small difference of large terms has the error of the terms."""
    name: str
    value: typing.Callable
    slopes: tuple
    hard: tuple = ()  # Zeros, poles and kinks: the sweep takes points close to them.
    low: float = float("-inf")  # The domain includes both ends.
    high: float = float("inf")
    least: tuple = (0, 0)  # For the value and the derivative. "tiny": 0 is correct in place of a subnormal number.
    options: tuple = ()
    inside: typing.Callable = lambda *_: True  # Returns whether a pair of numbers is in the domain.

    @property
    def label(self):
        return " ".join([self.name, *(f"{name}={value}" for name, value in self.options)])


CURVES = [
    Curve("sqrt", mp.sqrt, (lambda x: 1 / (2 * mp.sqrt(x)),), low=0),
    Curve("rsqrt", lambda x: 1 / mp.sqrt(x), (lambda x: -1 / (2 * x * mp.sqrt(x)),), low=0),
    Curve("square", lambda x: x * x, (lambda x: 2 * x,)),
    Curve("reciprocal", lambda x: 1 / x, (lambda x: -1 / (x * x),)),
    Curve("exp", r.exp, (r.exp,)),
    Curve("exp2", lambda x: r.exp(x * LN2), (lambda x: LN2 * r.exp(x * LN2),)),
    Curve("expm1", r.expm1, (r.exp,)),
    Curve("log", mp.log, (lambda x: 1 / x,), (1,), low=0),
    Curve("log2", lambda x: mp.log(x) / LN2, (lambda x: 1 / (x * LN2),), (1,), low=0),
    Curve("log10", lambda x: mp.log(x) / LN10, (lambda x: 1 / (x * LN10),), (1,), low=0),
    Curve("log1p", mp.log1p, (lambda x: 1 / (1 + x),), (-1,), low=-1),
    Curve("sin", mp.sin, (mp.cos,), (1.5707963267948966, 3.141592653589793, 6.283185307179586)),
    Curve("cos", mp.cos, (lambda x: -mp.sin(x),), (1.5707963267948966, 3.141592653589793)),
    Curve("tan", mp.tan, (lambda x: 1 / mp.cos(x) ** 2,), (1.5707963267948966, 3.141592653589793)),
    Curve("asin", mp.asin, (lambda x: 1 / mp.sqrt((1 - x) * (1 + x)),), (1, -1), low=-1, high=1),
    Curve("acos", mp.acos, (lambda x: -1 / mp.sqrt((1 - x) * (1 + x)),), (1, -1), low=-1, high=1),
    Curve("atan", mp.atan, (lambda x: 1 / (1 + x * x),), (1,), least=(0, "tiny")),
    Curve("sinh", r.sinh, (r.cosh,)),
    Curve("cosh", r.cosh, (r.sinh,)),
    Curve("tanh", r.tanh, (lambda x: 4 * r.sigmoid(2 * x) * r.sigmoid(-2 * x),), least=(0, 1)),
    Curve("asinh", mp.asinh, (lambda x: 1 / mp.sqrt(1 + x * x),)),
    Curve("acosh", mp.acosh, (lambda x: 1 / mp.sqrt((x - 1) * (x + 1)),), (1,), low=1),
    Curve("atanh", mp.atanh, (lambda x: 1 / ((1 - x) * (1 + x)),), (1, -1), low=-1, high=1),
    Curve("sigmoid", r.sigmoid, (lambda x: r.sigmoid(x) * r.sigmoid(-x),), least=("tiny", 1)),
    Curve("logsigmoid", lambda x: -r.softplus(-x), (lambda x: r.sigmoid(-x),), least=("tiny", "tiny")),
    Curve("softplus", lambda x: x if x > 20 else r.softplus(x), (lambda x: ONE if x > 20 else r.sigmoid(x),),
          least=("tiny", "tiny")),
    Curve("silu", lambda x: x * r.sigmoid(x), (lambda x: r.sigmoid(x) * (1 + x * r.sigmoid(-x)),),
          (-1.2784645427610738,), least=("tiny", 1)),
    Curve("gelu", lambda x: x * r.ndtr(x), (lambda x: r.ndtr(x) + x * r.density(x),), (-0.7517915246935645,),
          least=("tiny", 1)),
    Curve("gelu", r.gelu_tanh, (r.gelu_tanh_slope,), (-0.7524614229380155,), least=("tiny", 1),
          options=(("approximate", "tanh"),)),
    Curve("elu", lambda x: x if x > 0 else r.expm1(x), (lambda x: ONE if x > 0 else r.exp(x),)),
    Curve("celu", lambda x: x if x > 0 else r.expm1(x), (lambda x: ONE if x > 0 else r.exp(x),)),
    Curve("selu", lambda x: r.SELU_SCALE * (x if x > 0 else r.SELU_ALPHA * r.expm1(x)),
          (lambda x: r.SELU_SCALE * (ONE if x > 0 else r.SELU_ALPHA * r.exp(x)),)),
    Curve("mish", r.mish, (r.mish_slope,), (-1.1924312145154916,), least=("tiny", 1)),
    Curve("softsign", lambda x: x / (1 + abs(x)), (lambda x: 1 / (1 + abs(x)) ** 2,), least=(0, "tiny")),
    Curve("tanhshrink", r.tanhshrink, (lambda x: r.tanh(x) ** 2,)),
    Curve("erf", mp.erf, (lambda x: 2 / mp.sqrt(mp.pi) * r.exp(-x * x),)),
    Curve("erfc", r.erfc, (lambda x: -2 / mp.sqrt(mp.pi) * r.exp(-x * x),)),
    Curve("erfcx", r.erfcx, (r.erfcx_slope,), (30, -26), least=("tiny", "tiny")),
    Curve("erfinv", r.erfinv, (lambda x: 1 / r.erfinv_slope_at(r.erfinv(x)),), (1, -1), low=-1, high=1),
    Curve("ndtr", r.ndtr, (r.density,)),
    Curve("log_ndtr", r.log_ndtr, (r.hazard,), least=(0, "tiny")),
    Curve("ndtri", r.ndtri, (lambda p: 1 / r.density(r.ndtri(p)),), (1, 0.5), low=0, high=1),
    Curve("lgamma", r.lgamma, (r.digamma,), (0, 1, 2, -1, -2, -2.4570247382208006, -20, -170.5), least=(1, 1)),
    Curve("digamma", r.digamma, (lambda x: r.polygamma(1, x),), (0, 1.4616321449683623, -0.5040830082644554, -1, -20.25),
          least=(1, 0)),
    Curve("polygamma", lambda x: r.polygamma(1, x), (lambda x: r.polygamma(2, x),), (0, -1), least=(0, 1),
          options=(("n", 1),)),
    Curve("polygamma", lambda x: r.polygamma(4, x), (lambda x: r.polygamma(5, x),), (0,), low=0, least=("tiny", "tiny"),
          options=(("n", 4),)),
    Curve("i0", r.i0, (r.i1,)),
    Curve("i0e", lambda x: r.bessel(0, x), (lambda x: r.bessel(1, x) - mp.sign(x) * r.bessel(0, x),), least=(0, 1)),
    Curve("i1", r.i1, (r.i1_slope,)),
    Curve("i1e", lambda x: r.bessel(1, x), (r.i1e_slope,), least=(0, 1)),
    Curve("sinc", r.sinc, (r.sinc_slope,), (1, 2, -1), least=(0, 2.0 ** -10)),
    Curve("entr", lambda x: ZERO if x == 0 else -x * mp.log(x), (lambda x: -mp.log(x) - 1,), (0, 1, 0.36787944117144233),
          low=0, least=(0, 1)),
    Curve("logit", lambda x: mp.log(x) - mp.log1p(-x), (lambda x: 1 / (x * (1 - x)),), (0.5, 1), low=0, high=1,
          least=(1, 0)),
    Curve("deg2rad", lambda x: x * mp.pi / 180, (lambda x: mp.pi / 180,)),
    Curve("rad2deg", lambda x: x * 180 / mp.pi, (lambda x: 180 / mp.pi,)),
    # Functions of two numbers.
    Curve("div", lambda a, b: a / b, (lambda a, b: 1 / b, lambda a, b: -a / b / b), least=(0, "tiny")),
    Curve("pow", r.power, (lambda a, b: b * r.power(a, b - 1), lambda a, b: r.power(a, b) * mp.log(a)),
          inside=lambda a, b: a > 0 and abs(b - 1) * abs(mp.log(a)) < 88),  # a^(b - 1) is a number
    Curve("atan2", mp.atan2, (lambda a, b: b / (a * a + b * b), lambda a, b: -a / (a * a + b * b)), least=(0, "tiny"),
          inside=lambda a, b: a != 0 and b != 0),
    Curve("hypot", lambda a, b: mp.sqrt(a * a + b * b),
          (lambda a, b: a / mp.sqrt(a * a + b * b), lambda a, b: b / mp.sqrt(a * a + b * b)),
          inside=lambda a, b: 0 < max(abs(a), abs(b)) < 1e38),
    Curve("logaddexp", r.logaddexp, (lambda a, b: r.sigmoid(a - b), lambda a, b: r.sigmoid(b - a)), least=(1, "tiny")),
    Curve("logaddexp2", lambda a, b: r.logaddexp(a * LN2, b * LN2) / LN2,
          (lambda a, b: r.sigmoid((a - b) * LN2), lambda a, b: r.sigmoid((b - a) * LN2)), least=(1, "tiny")),
    Curve("xlogy", lambda a, b: a * mp.log(b), (lambda a, b: mp.log(b), lambda a, b: a / b), inside=lambda a, b: b > 0),
    Curve("xlog1py", lambda a, b: a * mp.log1p(b), (lambda a, b: mp.log1p(b), lambda a, b: a / (1 + b)),
          inside=lambda a, b: b > -1),
    Curve("remainder", lambda a, b: a - b * mp.floor(a / b), (lambda a, b: ONE, lambda a, b: -mp.floor(a / b)),
          inside=lambda a, b: b != 0 and abs(a) < abs(b) * 1e5),
    Curve("fmod", r.fmod, (lambda a, b: ONE, lambda a, b: -r.towards_zero(a / b)),
          inside=lambda a, b: b != 0 and abs(a) < abs(b) * 1e5),
]
