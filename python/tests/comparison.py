"""The allowed error of results, and the comparison of results with their expected values."""
import numpy as np
from samples.case import FLOATS, LARGEST, SMALLEST, epsilon, promoted


def array_of(tensor):
    """Returns the elements of a tensor of any dtype; floating elements as float64."""
    dtype = str(tensor.dtype)
    if dtype in FLOATS:
        return (tensor if dtype in ("f64", "f32") else tensor.detach().cast("f32")).detach().numpy().astype("float64")
    return tensor.numpy()


def weak(dtype, number):
    """Returns the dtype of an op on a tensor of this dtype and a number."""
    if dtype in FLOATS or isinstance(number, bool):
        return dtype
    if isinstance(number, float):
        return "f32"
    return "i64" if dtype == "bool" else dtype


def operands_dtype(sample, call):
    operands = call.operands()
    if not sample.promotes:
        return operands[0 if sample.result == "first" else -1].dtype
    dtype = promoted([each.dtype for each in operands])
    alone = len(call.args) == 2 and call.args[0] is operands[0]
    return weak(dtype, call.args[1]) if alone and isinstance(call.args[1], (int, float)) else dtype


def result_dtype(sample, call):
    if sample.result == "listed":
        return next(each for each in call.args if isinstance(each, str))
    if sample.result == "named":
        return call.named["dtype"]
    if sample.result not in ("same", "first", "floating", "accumulated", "squared"):
        return sample.result
    dtype = operands_dtype(sample, call)
    if sample.result == "squared":
        return "i64" if dtype == "bool" else dtype
    if sample.result == "floating" and dtype not in FLOATS:
        return "f32"
    return "i64" if sample.result == "accumulated" and dtype not in FLOATS else dtype


def allowed(sample, call, want, dtype):
    """Returns the allowed error of each element."""
    if sample.scale is None:
        scale = np.abs(want)
    elif sample.scale == "whole":
        scale = max([0.0] + [finite_largest(each) for each in [want, *(o.array for o in call.operands())]])
    else:
        args, named = call.mapped(lambda operand: operand.array)
        scale = np.abs(want) + np.abs(sample.scale(*args, **named))
    ulps = sample.ulps if dtype in ("f64", "f32") or sample.halves is None else sample.halves
    return ulps * epsilon(dtype) * scale + 4 * SMALLEST[dtype]


def finite_largest(values):
    values = np.asarray(values)
    if values.dtype.kind != "f":
        return 0.0
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max()) if finite.size else 0.0


def difference(got, want, dtype, error):
    """Describes the first element that differs by more than its allowed error; returns "" if all elements agree."""
    if got.shape != np.shape(want):
        return f"the shape is {got.shape} instead of {np.shape(want)}"
    if dtype not in FLOATS:
        wrong = got != want
    else:
        with np.errstate(all="ignore"):
            near = np.abs(got - want) <= error
            beyond = np.isinf(got) & (np.abs(want) + error > LARGEST[dtype]) & (np.sign(got) == np.sign(want))
            below = np.isinf(want) & (np.abs(got) + error >= LARGEST[dtype]) & (np.sign(got) == np.sign(want))
        wrong = ~(near | (got == want) | (np.isnan(got) & np.isnan(want)) | beyond | below)
    if not np.any(wrong):
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"element {at} is {got[at]!r} instead of {np.asarray(want)[at]!r}; {np.sum(wrong)} of {got.size} differ"
