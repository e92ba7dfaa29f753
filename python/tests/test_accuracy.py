"""Functions of numbers and of rows against 50 digits, over the whole range of f64 and f32. Bounds: accuracy/bounds.py."""
import plugrad
import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("mpmath", reason="mpmath is not installed")
from accuracy import rows  # noqa: E402
from accuracy.bounds import BOUNDS, ROW_BOUNDS  # noqa: E402
from accuracy.curves import CURVES  # noqa: E402
from accuracy.sweep import compared, computed, function  # noqa: E402

ODD = ["sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "expm1", "log1p", "erf", "erfinv", "i1", "i1e",
       "softsign", "tanhshrink", "sqrt", "deg2rad", "rad2deg"]


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("curve", CURVES, ids=[curve.label for curve in CURVES])
def test_errors_are_within_their_bounds(curve, dtype):
    within(compared(curve, dtype), BOUNDS[curve.label], curve.label)


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("row", rows.ROWS, ids=[row.name for row in rows.ROWS])
def test_errors_of_rows_are_within_their_bounds(row, dtype):
    within(rows.compared(row, dtype), ROW_BOUNDS[row.name], row.name)


def within(found, bounds, name):
    for what, worst, bound in zip(("the value", "a derivative"), found, bounds, strict=True):
        assert worst.error <= bound, f"{what} of {name} at {worst.place} is {worst.got}, exactly {worst.exact}"


@pytest.mark.parametrize("curve", CURVES, ids=[curve.label for curve in CURVES])
def test_nan_stays_nan(curve):
    operands = [np.array([np.nan, 1.0]) for _ in curve.slopes]
    assert np.isnan(computed(curve, operands, "f64")[0][0])


@pytest.mark.parametrize("name", ODD)
def test_odd_functions_keep_the_sign_of_zero(name):
    for dtype in ("f64", "f32", "f16", "bf16"):
        zeros = function(name)(plugrad.tensor([-0.0, 0.0], dtype=dtype)).to("f64").numpy()
        assert list(np.signbit(zeros)) == [True, False], dtype


def test_the_page_has_each_function_with_its_bounds(root):
    page = (root / "docs/accuracy.md").read_text(encoding="utf-8")
    lines = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    listed = {line[0][3:-1]: tuple(map(float, line[2].split(","))) for line in lines}
    assert listed == {name: tuple(map(float, pair)) for name, pair in (BOUNDS | ROW_BOUNDS).items()}
    assert list(BOUNDS) == [curve.label for curve in CURVES] and list(ROW_BOUNDS) == [row.name for row in rows.ROWS]
