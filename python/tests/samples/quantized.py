"""Weights of few bits, and products with them."""
from .case import Call, np
from .sample import Sample


def sizes(case):
    """Draws rows, groups, the length of a group and the number of bits."""
    return case.extent(1), case.integer(1, 3), case.choice([16, 32, 48]), case.choice([2, 4, 8])


def weights(case, rows, groups, length, bits):
    """Draws codes, and scales with or without minima."""
    codes = case.tensor((rows, groups * length * bits // 8), dtype="u8", low=0, high=256)
    dtypes = ["f32"] if case.dtype in ("f16", "bf16") else ["f32", "f16"]  # tests of halves widen every half
    return codes, case.tensor((rows, groups, case.integer(1, 2)), dtype=case.choice(dtypes), special=False)


def decoded(codes, scales, bits):
    rows, groups, parts = scales.shape
    numbers = ((codes[:, :, None] >> np.arange(0, 8, bits)) & (2**bits - 1)).reshape(rows, groups, -1).astype("float64")
    elements = scales[:, :, :1] * (numbers - (2 ** (bits - 1) if parts == 1 else 0))
    return (elements + scales[:, :, 1:] if parts == 2 else elements).reshape(rows, -1)


def dequantizations(case):
    rows, groups, length, bits = sizes(case)
    return Call(*weights(case, rows, groups, length, bits), bits, case.dtype)


def products(case):
    rows, groups, length, bits = sizes(case)
    x = case.tensor((*case.shape(high=2), groups * length), special="tame")
    return Call(x, *weights(case, rows, groups, length, bits))


def product(x, codes, scales):
    return x @ decoded(codes, scales, codes.shape[1] * 8 // x.shape[-1]).T


def magnitude(x, codes, scales):
    """The largest sum of the magnitudes of a result's terms."""
    weight = decoded(codes, scales, codes.shape[1] * 8 // x.shape[-1])
    return np.max(np.abs(x) @ np.abs(weight).T, initial=0) + 2**9 * np.max(np.abs(x), initial=0)


def integers(case):
    """Draws matrices with or without batches of a; b is i8."""
    k, batch = case.extent(), case.shape(high=2)
    low = 0 if case.dtype == "u8" else -128
    a = case.tensor((*batch, case.extent(), k), low=low, high=low + 256)
    return Call(a, case.tensor((*(batch if case.chance() else ()), k, case.extent()), dtype="i8", low=-128, high=128))


ROWS = [Sample("integer_matmul", integers, lambda a, b: np.matmul(a.astype("int64"), b.astype("int64")), None,
               dtypes=("u8", "i8"), result="i32", ulps=0, gradient=False),
        Sample("dequantize", dequantizations, lambda codes, scales, bits, dtype: decoded(codes, scales, bits), None,
               result="listed", gradient=False,
               scale=lambda codes, scales, bits, dtype: np.max(np.abs(scales), initial=0) * 2**bits),
        Sample("quantized_matmul", products, product, None, result="first", ulps=48, scale=magnitude, gradient=False)]
