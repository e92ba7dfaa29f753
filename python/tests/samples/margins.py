"""Losses of probabilities and counts, and losses with margins."""
from .case import APART, Call, Operand, np
from .losses import REDUCTIONS, of_pairs, pairs, reduced
from .sample import Sample

TAME = "tame"


def each_of(size):
    """Returns the scale of a loss's error: the size of its terms, times the number of terms that it adds."""
    return lambda x, *args, **named: size * (x.size if named.get("reduction") == "sum" else 1)


def settings(case, **choices):
    """Draws some of the named arguments, and the reduction."""
    named = {name: case.choice(values) for name, values in choices.items() if case.chance()}
    return named | {"reduction": case.choice(REDUCTIONS)}


def smooth_l1(x, target, beta=1):
    distance = np.abs(x - target)
    return np.where(distance < beta, distance**2 / 2 / (beta or 1), distance - beta / 2)


# --- Probabilities and counts.

def probabilities(case):
    shape = case.shape()
    ends = {"low": 0.05, "high": 0.95} if case.aim == "gradient" else {"low": 0, "high": 1}
    weight = {"weight": case.tensor(case.beside(shape), low=0.25, high=2, special=False)} if case.chance() else {}
    return Call(case.tensor(shape, special=False, **ends), case.tensor(shape, low=0, high=1, special=False, smooth=True),
                **weight, **settings(case))


def cross_entropy(x, target, weight=1.0, reduction="mean"):
    yes, no = np.maximum(np.log(x), -100), np.maximum(np.log(1 - x), -100)
    return reduced(-(target * yes + (1 - target) * no) * weight, reduction)


def counts(case):
    shape, logs = case.shape(), case.chance()
    x = case.tensor(shape, special=False, low=-2 if logs else 0.25, high=2)
    named = settings(case, full=[True], eps=[0.5] if not logs else [1e-8])
    return Call(x, case.tensor(shape, special=False, low=1 if case.aim == "kinks" else 0, high=4, kinks=(1,)),
                log_input=logs, **named)


def poisson(x, target, log_input=True, full=False, eps=1e-8, reduction="mean"):
    losses = np.exp(x) - target * x if log_input else x - target * np.log(x + eps)
    if full:
        safe = np.where(target > 1, target, 1)
        losses = losses + np.where(target > 1, safe * np.log(safe) - safe + np.log(2 * np.pi * safe) / 2, 0)
    return reduced(losses, reduction)


def normals(case):
    shape = case.shape(low=1)
    spread = case.choice([shape, (*shape[:-1], 1)])
    eps = [1e-6] if case.aim == "gradient" else [0.5]
    return Call(case.tensor(shape, special=TAME), case.tensor(shape, special=TAME),
                case.tensor(spread, special=False, low=0.25, high=2), **settings(case, full=[True], eps=eps))


def normal(x, target, var, full=False, eps=1e-6, reduction="mean"):
    var = np.maximum(var, eps)
    return reduced((np.log(var) + (x - target) ** 2 / var + np.log(2 * np.pi) * full) / 2, reduction)


def likelihood_rows():
    return [
        Sample("smooth_l1_loss", pairs(beta=[0.0, 0.5, 2.0]), of_pairs(smooth_l1), ulps=8, scale=each_of(8)),
        Sample("binary_cross_entropy", probabilities, cross_entropy, ulps=8, scale=each_of(2), constants=True,
               ties="PyTorch divides by 1e-12 as f32 has it"),
        Sample("poisson_nll_loss", counts, poisson, ulps=8, scale=each_of(16)),
        Sample("gaussian_nll_loss", normals, normal, ulps=8, scale=each_of(64))]


# --- Margins of pairs, with targets of 1 and -1.

def signs(case, shape):
    dtype = "i64" if case.aim == "gradient" or case.chance(0.3) else case.dtype
    return Operand(case.random.choice([-1, 1], shape).astype("int64" if dtype == "i64" else "float64"), dtype)


def hinges(case):
    shape = case.shape()
    return Call(case.tensor(shape, special=TAME, kinks=(0.5, 1)), signs(case, shape), **settings(case, margin=[0.5]))


def hinge(x, target, margin=1.0, reduction="mean"):
    return reduced(np.where(target == 1, x, np.maximum(margin - x, 0)), reduction)


def rankings(case):
    shape = case.shape()
    other = tuple(case.choice([1, extent]) for extent in shape)  # PyTorch refuses other ranks
    x1, x2 = case.tensor(shape, special=TAME), case.tensor(other, special=TAME, shift=APART / 2)
    return Call(x1, x2, signs(case, shape), **settings(case, margin=[0.5]))


def ranking(x1, x2, target, margin=0.0, reduction="mean"):
    return reduced(np.maximum(margin - target * (x1 - x2), 0), reduction)


def directions(case):
    shape = case.shape(low=1, high=2)
    return Call(case.tensor(shape, special=False), case.tensor(shape, special=False), signs(case, shape[:-1]),
                **settings(case, margin=[0.25]))


def cosine(x1, x2, target, margin=0.0, reduction="mean"):
    sizes = [np.sqrt(np.sum(x * x, axis=-1) + 1e-12) for x in (x1, x2)]
    found = np.sum(x1 * x2, axis=-1) / (sizes[0] * sizes[1])
    return reduced(np.where(target == 1, 1 - found, np.maximum(found - margin, 0)), reduction)


def triplets(case):
    shape = case.shape(low=1)
    tensors = (case.tensor(shape, special=False, repeats=False, shift=i * APART / 4) for i in range(3))
    return Call(*tensors, **settings(case, margin=[0.5], p=[1.0, 3.0], eps=[0.125], swap=[True]))


def triplet(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"):
    def distance(a, b):
        return np.sum(np.abs(a - b + eps) ** p, axis=-1) ** (1 / p)
    far = distance(anchor, negative)
    far = np.minimum(far, distance(positive, negative)) if swap else far
    return reduced(np.maximum(distance(anchor, positive) - far + margin, 0), reduction)


def soft_margins(case):
    shape = case.shape()
    return Call(case.tensor(shape, special=TAME), signs(case, shape), **settings(case))


def soft_margin(x, target, reduction="mean"):
    return reduced(np.logaddexp(0, -target * x), reduction)


def pair_rows():
    how = {"result": "first", "ulps": 8}
    return [
        Sample("hinge_embedding_loss", hinges, hinge, scale=each_of(4), **how),
        Sample("margin_ranking_loss", rankings, ranking, scale=each_of(8), **how),
        # PyTorch returns NaN for a vector of zeros in f16, because 1e-12 is 0 in f16
        Sample("cosine_embedding_loss", directions, cosine, scale=each_of(4), differs=("f16",), **how),
        Sample("triplet_margin_loss", triplets, triplet, scale=each_of(32), **how),
        Sample("soft_margin_loss", soft_margins, soft_margin, scale=each_of(1), constants=True, **how)]


# --- Margins between classes.

def rows_of_classes(case):
    """Draws x (n, c) or (c). For gradients, no two elements differ by 1 or 1 / 2."""
    classes = case.integer(1, 4)
    shape = (case.extent(1), classes) if case.chance(0.7) else (classes,)
    x = case.tensor(shape, special=TAME, repeats=False)
    return Operand(x.base * 1.01, x.dtype, x.views) if case.aim == "gradient" else x


def class_margins(case):
    x = rows_of_classes(case)
    *rows, classes = x.array.shape
    named = settings(case, p=[2], margin=[0.5])
    if case.chance(0.4):
        named["weight"] = case.tensor((classes,), low=0.25, high=2, special=False)
    return Call(x, case.tensor(rows, dtype="i64", low=0, high=classes), **named)


def class_margin(x, target, p=1, margin=1.0, weight=None, reduction="mean"):
    right = np.take_along_axis(x, target[..., None], axis=-1)
    parts = np.maximum(margin - right + x, 0) ** p * (1 if weight is None else weight[target][..., None])
    others = np.arange(x.shape[-1]) != target[..., None]
    return reduced(np.sum(parts * others, axis=-1) / x.shape[-1], reduction)


def several_targets(case):
    x = rows_of_classes(case)
    *rows, classes = x.array.shape
    target = np.full((int(np.prod(rows)), classes), -1)
    for row in target:
        listed = case.random.permutation(classes)[:case.integer(0, classes)]
        row[:len(listed)] = listed
        row[len(listed) + 1:] = case.integer(-1, classes - 1)  # targets after the first -1 do not count
    return Call(x, Operand(target.reshape(x.array.shape), "i64"), **settings(case))


def several_margins(x, target, reduction="mean"):
    classes = x.shape[-1]
    losses = []
    for row, listed in zip(x.reshape(-1, classes), target.reshape(-1, classes).tolist()):
        right = listed[:listed.index(-1)] if -1 in listed else listed
        wrong = [i for i in range(classes) if i not in right]
        losses.append(sum(max(0.0, 1 - row[j] + row[i]) for j in right for i in wrong) / classes)
    return reduced(np.array(losses).reshape(x.shape[:-1]), reduction)


def labels(case):
    shape = case.shape(low=1, least=1)
    weight = {"weight": case.tensor(case.beside(shape), low=0.25, high=2, special=False)} if case.chance() else {}
    return Call(case.tensor(shape, special=TAME), case.tensor(shape, special=False, low=0, high=1, smooth=True), **weight,
                **settings(case))


def label_losses(x, target, weight=1.0, reduction="mean"):
    losses = target * np.logaddexp(0, -x) + (1 - target) * np.logaddexp(0, x)
    return reduced(np.mean(losses * weight, axis=-1), reduction)


def class_rows():
    how = {"result": "first", "ulps": 8}
    fewer = {**how, "differs": ("f16", "bf16")}  # PyTorch takes f32 and f64 only
    return [
        Sample("multi_margin_loss", class_margins, class_margin, scale=each_of(32), constants=True, **fewer),
        Sample("multilabel_margin_loss", several_targets, several_margins, scale=each_of(16), **fewer),
        Sample("multilabel_soft_margin_loss", labels, label_losses, scale=each_of(4), **how)]


ROWS = [*likelihood_rows(), *pair_rows(), *class_rows()]
