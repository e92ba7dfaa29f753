"""Activation functions with kinks, and smooth ones."""
from . import peers
from .case import Call, np
from .elementwise import drawn_with, sigmoid
from .reductions import along, soft
from .sample import Sample, one

SCALE, ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def exponential(x, alpha=1.0, width=1.0):
    """x where x >= 0, and alpha (e^(x / width) - 1) where x is negative."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / width))


def ramp(x):
    return np.clip(x / 6 + 0.5, 0, 1)


def hardswish(x):
    return np.where(x <= -3, 0, np.where(x >= 3, x, x * ramp(x)))


def thresholds(case):
    return Call(case.tensor(case.shape(), kinks=(-1, 0, 1)), case.choice([-1.0, 0.0, 1.0]), case.choice([-2.0, 0.0, 0.5]))


def slopes(case):
    shape = case.shape()
    channels = shape[1] if len(shape) > 1 else 1
    x = case.tensor(shape, special="tame", kinks=(0,))
    return Call(x, case.tensor((channels if case.chance() else 1,), special="tame"))


def prelu(x, weight):
    return np.where(x > 0, x, x * weight.reshape(-1, *[1] * (x.ndim - 2)) if x.ndim > 1 else x * weight.item())


def random_slopes(case):
    low = case.choice([0.0, 0.25])
    return Call(case.tensor(case.shape(), kinks=(0,)), *([low, case.choice([0.5, 0.75])] if case.chance() else []))


def kinked_rows():
    halves = (-1, -0.5, -0.25, 0.25, 0.5, 1)
    widths = {"lambd": [0.25, 1.0]}
    return [
        Sample("relu6", one(kinks=(0, 6)), lambda x: np.clip(x, 0, 6), ulps=0),
        Sample("hardsigmoid", one(low=-4, high=4, kinks=(-3, 3)), ramp, ulps=2, scale=lambda x: 1,
               ties="PyTorch's slope is 1 / 6 as f32 has it"),
        Sample("hardswish", one(low=-4, high=4, kinks=(-3, 3)), hardswish, peers.hardswish, ulps=4, scale=lambda x: 1),
        Sample("threshold", thresholds, lambda x, threshold, value: np.where(x <= threshold, value, x), ulps=0),
        Sample("softshrink", drawn_with(kinks=halves, **widths),
               lambda x, lambd=0.5: np.where(np.abs(x) <= lambd, 0, x - np.copysign(lambd, x)), ulps=1),
        Sample("hardshrink", drawn_with(kinks=halves, **widths),
               lambda x, lambd=0.5: np.where(np.abs(x) <= lambd, 0, x), ulps=0),
        Sample("prelu", slopes, prelu, ulps=1),
        Sample("rrelu", random_slopes, lambda x, lower=1 / 8, upper=1 / 3: np.where(x > 0, x, x * (lower + upper) / 2),
               ulps=2)]


def halved(case):
    shape = list(case.shape(low=1))
    axis = case.axis(len(shape))
    shape[axis] = 2 * case.integer(0 if case.aim == "values" else 1, 2)
    x = case.tensor(shape, special="tame")
    return Call(x) if axis in (-1, len(shape) - 1) and case.chance() else Call(x, axis)


def glu(x, dim=-1):
    left, right = np.split(x, 2, axis=dim)
    return left * sigmoid(right)


def smooth_rows():
    return [
        Sample("mish", one(), lambda x: x * np.tanh(np.logaddexp(0, x)), ulps=8),
        Sample("selu", one(kinks=(0,)), lambda x: SCALE * exponential(x, ALPHA), ulps=8),
        Sample("celu", drawn_with(kinks=(0,), alpha=[0.5, 2.0]), lambda x, alpha=1: exponential(x, alpha, alpha), ulps=8),
        Sample("softsign", one(), lambda x: x / (1 + np.abs(x)), ulps=4),
        Sample("tanhshrink", one(), lambda x: x - np.tanh(x), ulps=4, scale=lambda x: np.abs(np.tanh(x))),
        Sample("logsigmoid", one(), lambda x: -np.logaddexp(0, -x), ulps=8),
        Sample("softmin", along(special=True), lambda x, dim: soft(-x, dim), ulps=64),
        Sample("glu", halved, glu, ulps=8)]


ROWS = [*kinked_rows(), *smooth_rows()]
