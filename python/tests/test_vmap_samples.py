"""Each function under vmap gives what a loop over the examples gives, and its derivative in forward mode is the product of
its Jacobian, from reverse mode. driver.py names the variables that set the device and the seed."""
import itertools

import plugrad
import pytest
from plugrad import func

np = pytest.importorskip("numpy")
from driver import DEVICE, SEED, names  # noqa: E402
from samples import ROWS, Case  # noqa: E402
from samples.case import Operand  # noqa: E402
from test_recorded import RANDOM, WAITS, calls_of, key_of, step_of  # noqa: E402

pytestmark = [pytest.mark.usefixtures("device_under_test"), pytest.mark.filterwarnings("ignore::RuntimeWarning")]
EXAMPLES = 3
# Functions that look at the order of elements in memory, which depends on the axis of the examples.
IN_MEMORY = {"as_strided"}


def array_of(x):
    return np.asarray(x.detach().to("cpu").tolist(), np.float64 if x.dtype.is_floating_point else None)


def assert_close(got, expected, tolerance, what):
    assert tuple(got.shape) == tuple(expected.shape), what
    assert got.dtype == expected.dtype, what
    a, b = array_of(got), array_of(expected)
    if not got.dtype.is_floating_point:
        assert (a == b).all(), what
        return
    scale = np.max(np.abs(b[np.isfinite(b)]), initial=1)
    np.testing.assert_allclose(a / scale, b / scale, rtol=tolerance, atol=tolerance, err_msg=what)


def tolerance_of(tensors):
    return max([{"f16": 4e-3, "bf16": 4e-2}.get(str(x.dtype), 2e-5) for x in tensors], default=2e-5)


def examples_of(function, operands, count):
    """Lists of leaves for calls of the function: one with the operands, the others with the elements of the operands in
    other orders; or in the same order, if the function has no value there."""
    all_leaves = [[each.leaf(plugrad, DEVICE) for each in operands]]
    rng = np.random.default_rng(SEED)
    for _ in range(1, count):
        leaves = []
        for each in operands:
            elements = rng.permutation(each.base.ravel()).reshape(each.base.shape)
            leaves.append(Operand(elements, each.dtype).leaf(plugrad, DEVICE))
        try:
            function(*leaves)
        except (ValueError, RuntimeError, IndexError):
            leaves = all_leaves[0]
        all_leaves.append(leaves)
    return all_leaves


@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
def test_vmap_equals_the_loop(row):
    if key_of(row, WAITS):
        pytest.skip(WAITS[key_of(row, WAITS)])
    for call in itertools.islice(calls_of(row), 3):
        check_vmap(row, *step_of(row, call))


def check_vmap(row, function, operands):
    if not operands:
        pytest.skip("it takes no tensor")
    leaves = examples_of(function, operands, EXAMPLES)
    columns = [list(each) for each in zip(*leaves, strict=True)]
    randomness = "different" if key_of(row, RANDOM) else "error"
    loop = [function(*each) for each in leaves]
    for axis in (0,) if row.op in IN_MEMORY else (0, -1):
        stacked = [plugrad.stack(column, axis) for column in columns]
        got = func.vmap(function, axis, randomness=randomness)(*stacked)
        for i, each in enumerate(got):
            expected = plugrad.stack([results[i] for results in loop])
            if key_of(row, RANDOM):
                assert each.shape == expected.shape
            else:
                assert_close(each, expected, tolerance_of([expected]), f"{row.name}, result {i}, axis {axis}")


# --- Forward mode.

def aimed(row, number):
    return row.draw(Case(f"{row.name} f64", number, "f64", "gradient", SEED))


def products(function, leaves, floating):
    """<w, J v> in forward mode and in reverse mode, for random directions v and w."""
    rng = np.random.default_rng(SEED)

    def of_floating(*given):
        full = list(leaves)
        for i, x in zip(floating, given, strict=True):
            full[i] = x
        return [each for each in function(*full) if each.dtype.is_floating_point]

    at = [leaves[i] for i in floating]
    along = [plugrad.Tensor(rng.standard_normal(x.shape), dtype="f64", device=DEVICE) for x in at]
    results, tangents = func.jvp(of_floating, tuple(at), tuple(along))
    plain, pullback = func.vjp(of_floating, *at)
    seeds = [plugrad.Tensor(rng.standard_normal(y.shape), dtype="f64", device=DEVICE) for y in plain]
    for got, expected in zip(results, plain, strict=True):
        assert_close(got, expected, 1e-9, "the values")
    forward = sum((w * t).sum().item() for w, t in zip(seeds, tangents, strict=True))
    scale = sum((w * t).abs().sum().item() for w, t in zip(seeds, tangents, strict=True))
    backward = sum((g * v).sum().item() for g, v in zip(pullback(seeds), along, strict=True))
    return forward, backward, scale


def calls_of_gradients(row):
    """The function, leaves, and places of the floating leaves, of three calls with distance from kinks."""
    if key_of(row, WAITS) or key_of(row, RANDOM):
        pytest.skip("the host waits, or it is random")
    found = 0
    for number in range(40):
        call = aimed(row, number)
        function, operands = step_of(row, call)
        leaves = [each.leaf(plugrad, DEVICE) for each in operands]
        floating = [i for i, x in enumerate(leaves) if x.dtype == plugrad.f64 and x.numel()]
        if floating and any(y.dtype == plugrad.f64 and y.numel() for y in function(*leaves)):
            yield call, function, leaves, floating
            found += 1
        if found == 3:
            return


DIFFERENTIABLE = [row for row in ROWS if "f64" in row.dtypes]


@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=names(DIFFERENTIABLE))
def test_forward_mode_equals_reverse_mode(row):
    for call, function, leaves, floating in calls_of_gradients(row):
        forward, backward, scale = products(function, leaves, floating)
        if np.isfinite(forward) and np.isfinite(backward):
            assert abs(forward - backward) <= 1e-9 * max(scale, 1), f"{forward} forward, {backward} in reverse\n{call!r}"


@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=names(DIFFERENTIABLE))
def test_three_deep(row):
    """Products with the Hessian: vmap of forward over reverse mode, beside a loop of reverse over reverse mode."""
    for call, function, leaves, floating in itertools.islice(calls_of_gradients(row), 2):
        rng = np.random.default_rng(SEED)

        def number(*given, function=function, leaves=leaves, floating=floating):
            full = list(leaves)
            for i, x in zip(floating, given, strict=True):
                full[i] = x
            return sum((y * y.detach() / 2 + y).sum() for y in function(*full) if y.dtype == plugrad.f64)

        gradient = func.grad(number, tuple(range(len(floating))))
        along = [plugrad.Tensor(rng.standard_normal(leaves[i].shape), dtype="f64", device=DEVICE) for i in floating]
        at = [plugrad.stack([leaves[i], leaves[i] * 1.0625]) for i in floating]
        got = func.vmap(lambda *x: func.jvp(gradient, x, tuple(along))[1])(*at)
        for example in range(2):
            wanted = func.vjp(gradient, *[x[example] for x in at])[1](tuple(along))
            for mine, other in zip(got, wanted, strict=True):
                if plugrad.isfinite(other).all() and plugrad.isfinite(mine[example]).all():
                    assert_close(mine[example], other, 1e-8, f"{row.name}\n{call!r}")
