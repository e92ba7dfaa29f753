"""Losses."""
import math

from .case import APART, Call, np
from .reductions import log_soft
from .sample import Sample

TAME = "tame"
REDUCTIONS = ["none", "mean", "sum"]


def reduced(losses, reduction, count=None):
    if reduction == "none":
        return losses
    total = np.sum(losses)
    return total if reduction == "sum" else total / np.float64(losses.size if count is None else count)


def pairs(low=None, high=None, **choices):
    """Draws two operands of the same shape, without equal elements."""
    def draw(case):
        shape = case.shape()
        x = case.tensor(shape, special=TAME, low=low, high=high, repeats=case.aim != "gradient")
        y = case.tensor(shape, special=TAME, low=low, high=high, repeats=case.aim != "gradient", shift=APART / 2)
        named = {"reduction": case.choice(REDUCTIONS)} if case.chance(0.7) else {}
        return Call(x, y, **named, **{name: case.choice(values) for name, values in choices.items() if case.chance()})
    return draw


def of_pairs(loss):
    def computed(x, target, reduction="mean", **named):
        return reduced(loss(x, target, **named), reduction)
    return computed


def huber(x, target, delta=1):
    distance = np.abs(x - target)
    return np.where(distance <= delta, distance**2 / 2, delta * (distance - delta / 2))


def divergence(x, target, log_target=False):
    if log_target:
        return np.exp(target) * (target - x)
    return np.where(target != 0, target * (np.log(np.where(target != 0, target, 1)) - x), 0)


def logits(case):
    shape = case.shape()
    x, target = case.tensor(shape, special=TAME), case.tensor(shape, low=0, high=1, special=False)
    weights = {name: case.tensor(case.beside(shape), low=0.25, high=2, special=False) for name in ("weight", "pos_weight")
               if case.chance()}
    return Call(x, target, **weights, reduction=case.choice(REDUCTIONS))


def binary_entropy(x, target, weight=1.0, pos_weight=1.0, reduction="mean"):
    positive, negative = np.logaddexp(0, -x), np.logaddexp(0, x)
    return reduced((pos_weight * target * positive + (1 - target) * negative) * weight, reduction)


def number_rows():
    terms = {"ulps": 32, "scale": "whole"}
    return [
        Sample("mse_loss", pairs(), of_pairs(lambda x, y: (x - y) ** 2), ulps=64, scale=lambda *args, **named: 8 ** 2),
        Sample("l1_loss", pairs(), of_pairs(lambda x, y: np.abs(x - y)), **terms),
        Sample("huber_loss", pairs(delta=[2.0]), of_pairs(huber), ulps=64, scale=lambda *args, **named: 16),
        Sample("binary_cross_entropy_with_logits", logits, binary_entropy, ulps=64, constants=True,
               scale=lambda *args, **named: 8),
        Sample("kl_div", pairs(low=0.05, high=2, log_target=[True]), of_pairs(divergence), ulps=64,
               scale=lambda *args, **named: 16)]


# --- Losses of classes.

def classes(case, x_low=None):
    """Draws x with an axis of classes. Returns x, its shape without this axis, and the number of classes."""
    count = case.integer(1, 4)
    rest = case.shape(high=2, least=1)
    batch = (case.extent(1),) if rest or case.chance(0.8) else ()
    shape = (*batch, count, *rest)
    return case.tensor(shape, special=TAME, low=x_low), (*batch, *rest), count


def targets(case, shape, count):
    named = {"weight": case.tensor((count,), low=0.25, high=2, special=False)} if case.chance(0.4) else {}
    if case.chance(0.3) and shape:
        named["ignore_index"] = case.integer(0, count - 1)
    return case.tensor(shape, dtype="i64", low=0, high=count), named


def entropies(case):
    x, shape, count = classes(case)
    named = {"label_smoothing": 0.25} if case.chance(0.3) else {}
    if case.chance(0.3):
        weight = {"weight": case.tensor((count,), low=0.25, high=2, special=False)} if case.chance() else {}
        return Call(x, case.tensor(x.array.shape, low=0, high=1, special=False, smooth=True), **weight, **named,
                    reduction=case.choice(REDUCTIONS))
    target, more = targets(case, shape, count)
    return Call(x, target, **more, **named, reduction=case.choice(REDUCTIONS))


def likelihoods(case):
    x, shape, count = classes(case)
    target, named = targets(case, shape, count)
    return Call(x, target, **named, reduction=case.choice(REDUCTIONS))


def picked(x, target, weight, ignore_index, reduction):
    axis = 0 if x.ndim == 1 else 1
    each = -np.squeeze(np.take_along_axis(x, np.expand_dims(target, axis), axis), axis)
    counts = (np.ones(x.shape[axis]) if weight is None else weight)[target]
    counts = np.where(target == ignore_index, 0, counts)
    return reduced(np.where(counts == 0, 0, each * counts), reduction, np.sum(counts))


def likelihood(x, target, weight=None, ignore_index=None, reduction="mean"):
    return picked(x, target, weight, ignore_index, reduction)


def entropy(x, target, weight=None, ignore_index=None, label_smoothing=0.0, reduction="mean"):
    axis = 0 if x.ndim == 1 else 1
    logs, count = log_soft(x, axis), x.shape[axis]
    weights = (np.ones(count) if weight is None else weight).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    if target.dtype.kind == "f":
        probabilities = target * (1 - label_smoothing) + label_smoothing / count
        losses = -np.sum(logs * probabilities * weights, axis=axis)
        return reduced(losses, reduction)
    plain = picked(logs, target, weight, ignore_index, "none")
    smooth = np.where(target == ignore_index, 0, -np.sum(logs * weights, axis=axis) / count)
    counts = np.where(target == ignore_index, 0, weights.reshape(-1)[target])
    return reduced(plain * (1 - label_smoothing) + smooth * label_smoothing, reduction, np.sum(counts))


def class_rows():
    terms = {"ulps": 128, "scale": lambda *args, **named: 8 * math.prod(args[0].shape), "result": "first", "constants": True}
    return [Sample("nll_loss", likelihoods, likelihood, **terms), Sample("cross_entropy", entropies, entropy, **terms)]


ROWS = [*number_rows(), *class_rows()]
