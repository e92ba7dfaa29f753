"""Products over shared axes of operands, and distances."""
import math

from . import peers
from .case import FLOATS, INTEGERS, NUMBERS, Call, np
from .reductions import size
from .sample import Sample

TAME = "tame"
EQUATIONS = ["ij->", "ii", "i,ij,j",  # sums of integers are i64
             "ij,jk->ik", "ij,jk", "ij->ji", "ii->i", "i,j->ij", "bij,bjk->bik", "ij,ij->i", "ij,kj->ik"]


def equations(case):
    equation = case.choice(EQUATIONS if case.dtype in FLOATS else EQUATIONS[3:])
    extents = {letter: case.extent(1) for letter in "ijkb"}
    inputs = equation.split("->")[0].split(",")
    return Call(equation, [case.tensor([extents[letter] for letter in each], special=TAME) for each in inputs])


def vectors(case):
    n = case.extent()
    return Call(case.tensor((n,), special=TAME), case.tensor((n,), special=TAME))


def two(left, right):
    """Draws two operands. A letter stands for an extent."""
    def draw(case):
        extents = {letter: case.extent() for letter in left + right}
        return Call(*(case.tensor([extents[letter] for letter in each], special=TAME) for each in (left, right)))
    return draw


def plus(left, right, out):
    """Draws x, which broadcasts to the product, and two operands; sometimes also beta and alpha."""
    def draw(case):
        extents = {letter: case.extent(1) for letter in left + right}
        x = case.tensor(case.beside(tuple(extents[letter] for letter in out)), special=TAME)
        named = {"beta": case.choice([0, 2]), "alpha": 3} if case.chance() else {}
        return Call(x, *(case.tensor([extents[letter] for letter in each], special=TAME) for each in (left, right)), **named)
    return draw


def added(x, a, b, beta=1, alpha=1):
    return (beta * x if beta else 0) + alpha * (a @ b)


def terms(case):
    shape = case.shape(least=1)
    named = {"value": 2} if case.chance() else {}
    return Call(case.tensor(shape, special=TAME), case.tensor(case.beside(shape), special=TAME),
                case.tensor(case.beside(shape), special=False, low=0.5 if case.dtype in FLOATS else 1, high=4), **named)


def whole_terms(case):
    call = terms(case)
    return Call(call.args[0], call.args[1], case.tensor(call.args[2].array.shape, special=TAME), **call.named)


def tensors(case):
    shared = case.shape(low=1, high=2, least=1)
    left, right = case.shape(high=1), case.shape(high=1)
    return Call(case.tensor(left + shared, special=TAME), case.tensor(shared + right, special=TAME), len(shared))


def kroneckers(case):
    return Call(case.tensor(case.shape(high=2), special=TAME), case.tensor(case.shape(high=2), special=TAME))


def crosses(case):
    shape = [*case.shape(high=2), 3]
    return Call(case.tensor(shape, special=TAME), case.tensor(shape, special=TAME), -1)


def powers(case):
    n = case.extent()
    return Call(case.tensor((*case.shape(high=1), n, n), special=TAME, low=-2, high=3), case.integer(0, 3))


def chains(case):
    extents = [case.extent(1) for _ in range(case.integer(3, 5))]
    return Call([case.tensor(pair, special=TAME, low=-2, high=3) for pair in zip(extents, extents[1:])])


def chained(matrices):
    out = matrices[0]
    for each in matrices[1:]:
        out = out @ each
    return out


def forms(case):
    i, j, o = case.extent(1), case.extent(1), case.extent(1)
    batch = case.shape(high=2)
    parts = [case.tensor(shape, special=TAME) for shape in ((*batch, i), (*batch, j), (o, i, j))]
    return Call(*parts, *([case.tensor((o,), special=TAME)] if case.chance() else []))


def traces(case):
    return Call(case.tensor((case.extent(), case.extent()), special=TAME))


def product_rows():
    products = {"ulps": 64, "scale": lambda *args, **named: 1600, "dtypes": NUMBERS, "differs": ("f16", "bf16"),
                "accepts": ("bool",)}
    return [
        Sample("einsum", equations, lambda equation, operands: np.einsum(equation, *operands),
               lambda equation, operands: peers.torch().einsum(equation, *operands), **products),
        Sample("tensordot", tensors, lambda a, b, dims: np.tensordot(a, b, dims),
               lambda a, b, dims: peers.torch().tensordot(a, b, dims), **products),
        Sample("outer", two("i", "j"), "outer", **products), Sample("inner", two("ik", "jk"), "inner", **products),
        Sample("dot", vectors, "dot", **products), Sample("vdot", vectors, "vdot", **products),
        Sample("mv", two("ij", "j"), "matmul", **products), Sample("mm", two("ij", "jk"), "matmul", **products),
        Sample("bmm", two("bij", "bjk"), "matmul", **products),
        Sample("addmm", plus("ij", "jk", "ik"), added, **products), Sample("addmv", plus("ij", "j", "i"), added, **products),
        Sample("baddbmm", plus("bij", "bjk", "bik"), added, **products),
        Sample("addcmul", whole_terms, lambda x, a, b, value=1: x + value * a * b, **products),
        Sample("addcdiv", terms, lambda x, a, b, value=1: x + value * np.divide(a, b), ulps=64,
               dtypes=NUMBERS, accepts=("bool",), result="floating", scale=lambda *args, **named: 20,
               differs=("f16", "bf16", *INTEGERS)),
        Sample("kron", kroneckers, "kron", **products),
        Sample("cross", crosses, lambda a, b, dim: np.cross(a, b),
               lambda a, b, dim: peers.torch().linalg.cross(a, b, dim=dim), **products),
        Sample("trace", traces, "trace", **{**products, "result": "accumulated"}),
        Sample("matrix_power", powers, lambda x, n: np.linalg.matrix_power(x, n) if x.size else x, None, **products),
        Sample("multi_dot", chains, chained, peers.named("linalg.multi_dot"), **products),
        Sample("bilinear", forms, lambda a, b, weight, bias=0: np.einsum("...i,oij,...j->...o", a, weight, b) + bias,
               ulps=256,
               scale=lambda *args, **named: 1600, differs=("f16", "bf16"), accepts=(*INTEGERS, "bool"))]


def rows_of(case):
    n, k, m = case.extent(1), case.extent(1), case.extent(1)
    named = {"p": case.choice([1, 2, 3.0, math.inf])} if case.chance() and case.aim == "values" else {}
    return Call(case.tensor((n, m), special=False, repeats=False), case.tensor((k, m), special=False, repeats=False),
                **named)


def norm_of(x, p, axis, keep=False):
    return size(x, axis, keep, p=p)


def same_shapes(case, low=0):
    shape = case.shape(low=max(low, 1), least=1)
    return case.tensor(shape, special=False, repeats=False), case.tensor(shape, special=False, repeats=False)


def directions(case):
    a, b = same_shapes(case)
    return Call(a, b, case.axis(a.array.ndim))


def cosine(a, b, dim):
    lengths = [np.maximum(norm_of(each, 2, dim, True), 1e-8) for each in (a, b)]
    return np.sum(a / lengths[0] * b / lengths[1], axis=dim)


def lines(case):
    x, _ = same_shapes(case)
    return Call(x, case.choice([1, 2, 3]), case.axis(x.array.ndim))


def renormalised(x, p, dim, maxnorm):
    axes = tuple(axis for axis in range(x.ndim) if axis != dim % x.ndim)
    lengths = np.sum(np.abs(x) ** p, axis=axes, keepdims=True) ** (1 / p)
    return np.where(lengths > maxnorm, x * maxnorm / (lengths + 1e-7), x)


def parts(case):
    shape = case.shape(low=2, least=1)
    return Call(case.tensor(shape, special=False, kinks=(0,)), case.choice([1, 2]), case.axis(len(shape)), 0.5)


def distance_rows():
    near = {"ulps": 128, "scale": lambda *args, **named: 32}
    return [
        Sample("dist", lambda case: Call(*same_shapes(case)), lambda a, b: np.sqrt(np.sum((a - b) ** 2)), **near),
        Sample("cdist", rows_of, lambda a, b, p=2: norm_of(a[:, None] - b[None], p, -1), **near, differs=("f16", "bf16")),
        Sample("pairwise_distance", lambda case: Call(*same_shapes(case)),
               lambda a, b: np.sqrt(np.sum((a - b + 1e-6) ** 2, axis=-1)), **near, differs=("f16", "bf16")),
        Sample("cosine_similarity", directions, cosine, **near),
        Sample("normalize", lines, lambda x, p, dim: x / np.maximum(norm_of(x, p, dim, True), 1e-12), **near,
               differs=("f16",)),  # PyTorch divides by an eps of 0
        Sample("renorm", parts, renormalised, **near)]


ROWS = [*product_rows(), *distance_rows()]
