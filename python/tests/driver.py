"""The common part of the tests of samples: the device, the cases, and their expected results.

PLUGRAD_TEST_DEVICE names the device, PLUGRAD_SAMPLE_CASES sets the number of cases for each dtype of an op, and
PLUGRAD_SAMPLE_SEED selects further cases.
"""
import os

import numpy as np
from comparison import allowed, array_of, difference
from samples import Case
from samples.case import FLOATS, NUMPY_NAMES, promoted, rounded

DEVICE = os.environ.get("PLUGRAD_TEST_DEVICE", "cpu")
SEED = int(os.environ.get("PLUGRAD_SAMPLE_SEED", "0"))
CASES = int(os.environ.get("PLUGRAD_SAMPLE_CASES", "12"))


def names(rows):
    return [row.name.replace(" ", "-") for row in rows]


def cases(row, dtypes, each, aim="values"):
    """Yields (text to print, Call), `each` times for each dtype."""
    for dtype in dtypes:
        for number in range(each):
            case = Case(f"{row.name} {dtype}", number, dtype, aim, SEED)
            yield f"case {number} of {dtype}, seed {SEED}", row.draw(case)


def listed(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def converted(operand, dtype):
    """Returns the elements of an operand after promotion to the dtype, as an array."""
    if dtype in FLOATS:
        return rounded(operand.array.astype("float64"), dtype)
    return operand.array.astype(NUMPY_NAMES[dtype])


def expectation(row, call):
    """Returns the expected results, computed with NumPy."""
    operands = call.operands()
    together = promoted([each.dtype for each in operands]) if row.promotes and operands else None
    args, named = call.mapped(lambda each: converted(each, together) if together else each.array)
    if row.told:
        named["dtype"] = operands[0].dtype
    with np.errstate(all="ignore"):
        return [np.asarray(each) for each in listed(row.expected(*args, **named))]


def faults(row, call, results, wanted, dtype, factor=1):
    """Describes the first difference; returns "" if the results agree. factor: multiplies the error that the row allows."""
    if len(results) != len(wanted):
        return f"{len(results)} results instead of {len(wanted)}"
    for got, want in zip(results, wanted):
        if str(got.dtype) != dtype:
            return f"the dtype is {got.dtype} instead of {dtype}"
        want = rounded(want, dtype) if dtype in FLOATS and row.ulps == 0 else want
        with np.errstate(all="ignore"):
            error = factor * allowed(row, call, want, dtype) if dtype in FLOATS else 0
        found = difference(array_of(got), want, dtype, error)
        if found:
            return found
    return ""
