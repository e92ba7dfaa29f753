#!/usr/bin/env python3
"""Writes print_golden.txt in this folder: arrays, and the text of NumPy's str() for each with default options.

For each array: a line `dtype (shape) elements...` (no elements: 0, 1, 2, ...), the lines of the text, then a line of `---`.
"""
import math
from pathlib import Path

import numpy as np

DTYPES = {"f32": "float32", "f64": "float64", "i64": "int64", "bool": "bool"}
INF, NAN = math.inf, math.nan
SCALARS = [0.0, -0.0, 1.0, 1.5, 0.1, -2.25, 1e-4, 9.9e-5, 1e15, 1e16, 123456789.0, 1e-30, 1 / 3, INF, -INF, NAN, 16777216.0]
VECTORS = [
    [1.0, 2.0, 3.0], [1.5, 2.25, -3.0], [0.1, 0.2, 0.3, 0.123456789], [0.0, -0.0, 1.0], [0.5], [-1.0, -10.0, -100.5],
    [NAN, 1.0, INF, -INF], [NAN, NAN], [-INF, INF], [NAN, 1e10, 1.0], [-INF, 0.5, 100.25], [INF, 2.0], [NAN, -1e-7],
    [1e-5, 1.0, 1.0], [1.0, 1000.0], [1.0, 1001.0], [1e8, 1e8], [99999999.0, 99999998.0], [1e6, 2e6], [999999.0, 1000.0],
    [1e-30, 1e30], [1e5, -1e-5, 0.0], [0.00012345678912, 0.0002], [1.123456785, 1.123456775], [1234.56789012, 2.5],
    [0.000123456789123, 5.0], [1e-40], [i / 7 for i in range(20)], [(-1) ** i * i / 7 for i in range(24)],
]
COUNTED = [(2, 3), (2, 2, 2), (1, 1, 1), (30,), (2, 40), (2, 1, 2, 2), (1001,), (40, 30), (11, 10, 10), (2000, 2), (2, 2000),
           (7, 6, 6, 7)]


def rows():
    for dtype in ("f64", "f32"):
        yield from ((dtype, (), [value]) for value in SCALARS)
        yield from ((dtype, (len(values),), values) for values in VECTORS)
        yield from ((dtype, shape, []) for shape in COUNTED)
        yield dtype, (2, 2), [0.1, 0.2, 0.3, 0.123456789]
    yield from (("f64", (len(v),), v) for v in ([1e5, 1e100], [1e-100, -1.5e-5], [1e300, NAN, -INF], [1e-320], [1e-300],
                                                [12345678.0, 1e5]))
    yield "f64", (3, 8), [(-1) ** i * i / 7 for i in range(24)]
    yield "f64", (1000,), []
    yield "f64", (5, 6, 6, 6), []
    yield from (("i64", s, v) for s,
                v in (((), [5]), ((), [-7]), ((3,), [1, -20, 300]), ((2, 2), [1, 2, 3, -4]), ((2,), [2**63 - 1, -(2**63)])))
    yield from (("i64", shape, []) for shape in ((5, 5), (40,), (1500,), (35, 35), (1, 2000)))
    yield "i64", (24,), [10**6 * i for i in range(24)]
    yield from (("bool", s, v) for s,
                v in (((), [1]), ((), [0]), ((2,), [1, 1]), ((2,), [1, 0]), ((2, 2), [1, 0, 1, 1]), ((15,), [1, 0, 1] * 5)))
    yield from ((dtype, shape, []) for dtype in DTYPES for shape in ((0,), (0, 3), (2, 0, 2)))


def text(dtype, shape, values):
    array = np.array(values) if values else np.arange(math.prod(shape))
    return str(array.astype(DTYPES[dtype]).reshape(shape))


lines = []
for dtype, shape, values in rows():
    lines += [" ".join([dtype, "(" + ",".join(map(str, shape)) + ")", *map(repr, values)]), text(dtype, shape, values),
              "---"]
Path(__file__).with_suffix(".txt").write_text("\n".join(lines) + "\n")
