"""Writes docs/accuracy.md: the bounds of accuracy.bounds, and the worst places that a sweep finds on this machine.

python -m accuracy ROOT [DEVICE]   in python/tests
"""
import sys
from datetime import date
from pathlib import Path

import plugrad

from .bounds import BOUNDS
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


def told(worst):
    return f"{worst.error:.2g} at {', '.join(f'{x:.6g}' for x in worst.place)}" if worst.place else "exact"


def row(curve):
    value, slope = BOUNDS[curve.label]
    least = ", ".join(str(each or "-") for each in curve.least) if any(curve.least) else ""
    found = {dtype: compared(curve, dtype) for dtype in ("f64", "f32")}
    cells = [told(found[dtype][which]) for which in (0, 1) for dtype in ("f64", "f32")]
    count = sum(len(places(curve, dtype)[0]) for dtype in ("f64", "f32"))
    return f"| `{curve.label}` | {count} | {value}, {slope} | {least} | {' | '.join(cells)} |"


def main(root, device="cpu"):
    plugrad.set_default_device(device)
    lines = [row(curve) for curve in CURVES]
    text = PREFACE.format(device=device, date=date.today()) + "\n".join(lines) + "\n"
    Path(root, "docs/accuracy.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
