"""Writes docs/accuracy.md: the bounds of accuracy.bounds, and the largest errors that a sweep finds on this machine.

python -m accuracy ROOT [DEVICE]   in python/tests
"""
import sys
from datetime import date
from pathlib import Path

import plugrad

from . import rows
from .bounds import BOUNDS, ROW_BOUNDS
from .curves import CURVES
from .sweep import compared, places

PREFACE = """# Accuracy

`python/tests/accuracy` sweeps each function of one or two numbers over the whole range of f64 and f32: all exponents down
to subnormal numbers, tails, and places ever closer to zeros, poles and kinks. mpmath computes the value and the first
derivative in 50 digits. The tests fail if an error is above its bound. Bounds and errors are in ulp, units in the last place
of the exact result. Where the exact result vanishes and its terms do not, the column "at least" names the number whose ulp
counts instead; "tiny" means that 0 may stand for a subnormal number.

- Outside the table: a derivative whose own factor overflows although the product is a number, as b a^(b - 1) of `pow` for
  subnormal a, and `hypot` of numbers whose length is infinite.
- `erf`, `gelu`: the rounding of x^2 costs e^(-x^2) up to x^2 ulp in the tail. `erfc` and `ndtr` split x^2 first.
- `erfinv`, `ndtri`: the derivative comes from the rounded result y, which costs y^2 ulp.
- `tanh`, `sigmoid`: the derivative comes from the result too, and is 0 where the result is rounded to 1.

`python -m accuracy` wrote this page from a sweep on `{device}`, {date}.

| function | places | bounds: value, derivative | at least | worst value, f64 | f32 | worst derivative, f64 | f32 |
|---|---|---|---|---|---|---|---|
"""

ROWS = """
## Rows

`python/tests/accuracy/rows.py` does the same to functions of rows of 2, 8 and 40 numbers: ordinary, far from 0, cancelling,
large, small, all equal, logits over the range of e^x. mpmath differentiates a weighted sum of each result. The errors of
derivatives are in ulp of the largest derivative of the row.

- Values count in ulp of no smaller a number than their terms where these cancel: the sum of their magnitudes for `sum`,
  `mean`, `cumsum`, `kl_div` and `poisson_nll_loss`; the largest logit for logarithms of sums of exponentials; the mean in
  standard deviations for `layer_norm`.
- `softmax`: rounding x - max x costs half an ulp of the difference, up to 372 ulp of the result at e^-744.
- `softmax`, `softmin`: derivatives count in ulp of 1 at least: they come from the rounded result, as that of `sigmoid`.
- `cross_entropy`, `logcumsumexp`: derivatives come from the rounded logarithm, which costs as many ulp as the largest logit
  has times 1. Logits that lie around 0 lose nothing.

| function | rows | bounds: value, derivative | worst value, f64 | f32 | worst derivative, f64 | f32 |
|---|---|---|---|---|---|---|
"""


def told(worst):
    if not worst.place:
        return "exact"
    place = [f"{x:.6g}" if isinstance(x, float) else str(x) for x in worst.place]
    return f"{worst.error:.2g} at {', '.join(place)}"


def cells(found):
    return " | ".join(told(found[dtype][which]) for which in (0, 1) for dtype in ("f64", "f32"))


def row(curve):
    value, slope = BOUNDS[curve.label]
    least = ", ".join(str(each or "-") for each in curve.least) if any(curve.least) else ""
    found = {dtype: compared(curve, dtype) for dtype in ("f64", "f32")}
    count = sum(len(places(curve, dtype)[0]) for dtype in ("f64", "f32"))
    return f"| `{curve.label}` | {count} | {value}, {slope} | {least} | {cells(found)} |"


def line(row):
    value, slope = ROW_BOUNDS[row.name]
    found = {dtype: rows.compared(row, dtype) for dtype in ("f64", "f32")}
    return f"| `{row.name}` | {sum(len(rows.rows_of(row, dtype)) for dtype in found)} | {value}, {slope} | {cells(found)} |"


def main(root, device="cpu"):
    plugrad.set_default_device(device)
    curves, others = [row(curve) for curve in CURVES], [line(each) for each in rows.ROWS]
    text = PREFACE.format(device=device, date=date.today()) + "\n".join([*curves, ROWS + "\n".join(others)]) + "\n"
    Path(root, "docs/accuracy.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
