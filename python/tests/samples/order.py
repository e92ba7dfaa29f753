"""Sorting, order statistics and counting."""
from .case import ALL, INTEGERS, NUMBERS, Call, np
from .sample import Sample


def part(op, index):
    """Returns a function for one of the results of an op."""
    return lambda plugrad, *args, **named: getattr(plugrad, op)(*args, **named)[index]


def peer_part(op, index):
    def called(*args, **named):
        import torch
        return getattr(torch, op)(*args, **named)[index]
    return called


def lines(high=4, least=1, special="finite", **choices):
    """Draws a tensor and an axis."""
    def draw(case):
        shape = case.shape(low=1, high=high, least=least)
        named = {name: case.choice(values) for name, values in choices.items() if case.chance()}
        return Call(case.tensor(shape, special=special, repeats=case.aim != "gradient"), case.axis(len(shape)), **named)
    return draw


def ordered(x, dim, descending=False):
    found = np.sort(x, axis=dim)
    return np.flip(found, axis=dim) if descending else found


def places(x, dim, descending=False):
    """Returns the positions of a stable sort, in descending order as well."""
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    flipped = np.flip(np.argsort(np.flip(x, axis=dim), axis=dim, kind="stable"), axis=dim)
    return x.shape[dim] - 1 - flipped


def largest(case):
    call = lines()(case)
    x, dim = call.args
    return Call(x, case.integer(1, x.array.shape[dim]), dim, **({"largest": False} if case.chance() else {}))


def chosen(x, k, dim, largest=True):
    return np.take(ordered(x, dim, largest), np.arange(k), axis=dim)


def kth(case):
    call = lines()(case)
    x, dim = call.args
    return Call(x, case.integer(1, x.array.shape[dim]), dim)


def whole(case):
    return Call(case.tensor((case.extent(),), low=0, high=6))


def middle(x, dim):
    return np.take(np.sort(x, axis=dim), (x.shape[dim] - 1) // 2, axis=dim)


def differences(case):
    shape = case.shape(low=1)
    return Call(case.tensor(shape, special="tame"), case.integer(0, 2), case.axis(len(shape)))


def members(case):
    return Call(case.tensor(case.shape(), special="tame"), case.tensor((case.extent(),), special="tame"))


def order_rows():
    exact = {"dtypes": ALL, "ulps": 0}
    index = {"dtypes": ALL, "ulps": 0, "result": "i64", "gradient": False}
    fewer = {"dtypes": NUMBERS, "accepts": ("bool",), "ulps": 0}
    return [
        Sample("sort", lines(descending=[True]), ordered, peer_part("sort", 0), call=part("sort", 0), **exact),
        Sample("sort", lines(descending=[True]), places, None, call=part("sort", 1), variant="places", **index),
        Sample("argsort", lines(descending=[True]), places, None, **index),
        Sample("msort", lambda case: Call(case.tensor(case.shape(low=1, least=1), special="finite", repeats=False)),
               lambda x: np.sort(x, axis=0), **exact),
        Sample("topk", largest, chosen, peer_part("topk", 0), call=part("topk", 0), **exact, differs=("bool",)),
        Sample("kthvalue", kth, lambda x, k, dim: np.take(np.sort(x, axis=dim), k - 1, axis=dim), None,
               call=part("kthvalue", 0), **fewer),
        Sample("median", lines(), middle, None, call=part("median", 0), **fewer),
        Sample("cummax", lines(), lambda x, dim: np.maximum.accumulate(x, axis=dim), peer_part("cummax", 0),
               call=part("cummax", 0), **exact, ties="sampled without ties only"),
        Sample("cummin", lines(), lambda x, dim: np.minimum.accumulate(x, axis=dim), peer_part("cummin", 0),
               call=part("cummin", 0), **exact, ties="sampled without ties only"),
        Sample("bincount", whole, lambda x: np.bincount(x.astype("int64")), None, dtypes=INTEGERS, ulps=0, result="i64",
               gradient=False, accepts=("bool",)),
        Sample("diff", differences, lambda x, n, dim: np.diff(x, n, axis=dim), dtypes=NUMBERS, ulps=4, scale="whole",
               accepts=("bool",)),
        Sample("isin", members, lambda x, among: np.isin(x, among), None, dtypes=NUMBERS, accepts=("bool",), result="bool",
               gradient=False)]


ROWS = order_rows()
