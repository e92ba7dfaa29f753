"""Each op on random arguments of every dtype: compares values with NumPy's, and gradients with differences. driver.py names
the variables that set the device, the seed and the number of cases."""
import importlib.util

import plugrad
import pytest

np = pytest.importorskip("numpy")
from comparison import result_dtype  # noqa: E402
from differences import Problem, first, second  # noqa: E402
from driver import CASES, DEVICE, SEED, cases, expectation, faults, listed, names  # noqa: E402
from samples import ROWS, WITHOUT  # noqa: E402
from samples.case import ALL  # noqa: E402

pytestmark = [pytest.mark.usefixtures("device_under_test"), pytest.mark.filterwarnings("ignore::RuntimeWarning")]
LEAST = 60  # cases for each row
DIFFERENTIABLE = [row for row in ROWS if row.gradient]


@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
def test_values(row):
    for number, call in cases(row, row.dtypes, max(CASES, -(-LEAST // len(row.dtypes)))):
        args, named = call.mapped(lambda each: each.view(each.leaf(plugrad, DEVICE)))
        results = listed(row.called(plugrad, *args, **named))
        found = faults(row, call, results, expectation(row, call), result_dtype(row, call))
        assert not found, f"{row.name}: {found}\n{number}: {call!r}"


@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=names(DIFFERENTIABLE))
def test_gradients_equal_differences(row):
    compared = 0
    for number, call in cases(row, ["f64"], CASES, "gradient"):
        problem = Problem(row, call, DEVICE, np.random.default_rng(SEED))
        if not problem.operands or not problem.loss(problem.leaves()).requires_grad:
            continue
        for what, derivative in (("gradient", first), ("second derivative", second)):
            got, want, size = derivative(problem)
            if np.isnan(want) and (np.isnan(got) or np.isnan(problem.loss(problem.leaves()).item())):
                continue  # for example, the variance of one element
            assert abs(got - want) <= 1e-6 * size, f"{row.name}: the {what} is {got} instead of {want}\n{number}: {call!r}"
        compared += 1
    assert compared >= CASES / 2, f"{row.name} was recorded in {compared} of {CASES} cases"


def purity(call, dtype):
    """Returns the number of operands of this dtype less the number of operands of other dtypes."""
    return sum(1 if each.dtype == dtype else -1 for each in call.operands())


@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
def test_other_dtypes_are_refused(row):
    refused = set(ALL) - set(row.dtypes) - set(row.accepts)
    for dtype in refused:
        calls = [call for _, call in cases(row, [dtype], 20)]
        call = max(calls, key=lambda each: purity(each, dtype))
        args, named = call.mapped(lambda each: each.view(each.leaf(plugrad, DEVICE)))
        with pytest.raises((ValueError, TypeError, NotImplementedError)):
            row.called(plugrad, *args, **named)
    assert refused.isdisjoint(row.dtypes)


def public_functions(root):
    """Returns the names in the package of the functions that the headers of the core declare."""
    spec = importlib.util.spec_from_file_location("generate", root / "python/generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    functions = generate.read_headers(root / "core/include/plugrad/ops")
    return {function.python for function in functions.values()}


def test_every_op_has_a_row(root):
    declared, shown = public_functions(root), {row.op for row in ROWS}
    assert len(declared) > 100
    assert sorted(declared - shown - set(WITHOUT)) == [], "these ops have no row in python/tests/samples"
    assert sorted((shown | set(WITHOUT)) - declared) == [], "these rows name no op"
    assert not shown & set(WITHOUT) and len(ROWS) == len(set(names(ROWS)))
