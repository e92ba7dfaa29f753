"""Compositions of halves compute in the accumulator's dtype and round once: compares bf16 and f16 with f64."""
import pytest

np = pytest.importorskip("numpy")
import plugrad  # noqa: E402
from comparison import array_of  # noqa: E402
from driver import DEVICE, cases, listed, names  # noqa: E402
from samples import ROWS  # noqa: E402
from samples.case import DIGITS  # noqa: E402

HALVES = "bf16", "f16"
ROUNDED_MORE = {  # ops that round intermediate results, with the reason
    "scatter_add": "each element of the source is added to the result, as PyTorch does it",
    "index_add": "as scatter_add",
    "einsum": "a product of two terms is a result of its own before it is summed",
    **dict.fromkeys([f"conv_transpose{n}d" for n in (1, 2, 3)], "the bias is added to what the device's kernel rounded"),
    "rms_norm": "eps depends on the dtype", "nan_to_num": "the limits depend on the dtype",
}
ULPS = 0.75  # in ulp of the result: 0.5 for the rounding, the rest for sums of f32 close to a tie
SLACK = 2.0**-17  # relative to the largest operand or result, and to its square: the error of f32 where terms cancel
ROUNDED_ONCE = [row for row in ROWS if set(HALVES) <= set(row.dtypes) and row.op not in ROUNDED_MORE]


def results(row, call, wide):
    def operand(each):
        leaf = each.leaf(plugrad, DEVICE)
        return each.view(leaf.to("f64") if wide and each.dtype in HALVES else leaf)
    args, named = call.mapped(operand)
    return [each for each in listed(row.called(plugrad, *args, **named)) if isinstance(each, plugrad.Tensor)]


@pytest.mark.parametrize("row", ROUNDED_ONCE, ids=names(ROUNDED_ONCE))
def test_halves_are_rounded_once(row):
    for number, call in cases(row, HALVES, 20):
        largest = max((np.abs(each.array[np.isfinite(each.array)]).max(initial=0) for each in call.operands()
                       if each.dtype in HALVES), default=0)
        for half, exact in zip(results(row, call, False), results(row, call, True), strict=True):
            if str(half.dtype) not in HALVES or str(exact.dtype) != "f64" or half.shape != exact.shape:
                continue
            got, want = array_of(half).astype("float64"), array_of(exact)
            with np.errstate(all="ignore"):
                counts = np.isfinite(got) & np.isfinite(want) & (np.abs(want) > 1e-4)
                ulp = 2.0 ** (np.floor(np.log2(np.abs(want))) - DIGITS[str(half.dtype)] + 1)
                slack = SLACK * (1 + largest) * (1 + max(largest, np.abs(want[counts]).max(initial=0)))
                wrong = counts & (np.abs(got - want) > ULPS * ulp + slack)
            assert not wrong.any(), f"{number}: {got[wrong][:3]} instead of {want[wrong][:3]}\n{call!r}"
