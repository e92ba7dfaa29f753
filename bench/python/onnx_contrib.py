"""Compares operators of com.microsoft with ONNX Runtime on random inputs, one model for each row.

onnx_contrib.py [--only TEXT]

plugrad, onnx and onnxruntime must be installed in one environment. Prints the largest difference by the largest magnitude,
and exits with 1 if a row differs by more than 1e-5, or by more than one code.
"""
import argparse
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import plugrad.onnx

random = np.random.default_rng(0)


def floats(*shape):
    return random.standard_normal(shape).astype("f4")


def integers(low, high, shape, dtype="u1"):
    return random.integers(low, high, shape).astype(dtype)


def lengths(*values):
    return np.array(values, "i4")


def number(scale, zero):
    """A scale and a zero point."""
    return np.float32(scale), np.uint8(zero)


def caches(length, half):
    angles = np.outer(np.arange(length), 1 / 10000 ** (np.arange(half) / half))
    return np.cos(angles).astype("f4"), np.sin(angles).astype("f4")


COS, SIN = caches(32, 4)
WIDE_COS, WIDE_SIN = caches(32, 8)
PAST = floats(2, 2, 4, 5, 8)
MASK = np.array([[1, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0]], "i4")
# The operator, inputs by position (None: absent), the number of outputs, attributes. Inputs of the set {..} are constants.
ROWS = [
    ("Gelu", [floats(3, 8)], 1, {}),
    ("FastGelu", [floats(3, 8), floats(8)], 1, {}),
    ("BiasGelu", [floats(3, 8), floats(8)], 1, {}),
    ("QuickGelu", [floats(3, 8)], 1, {"alpha": 1.5}),
    ("SkipLayerNormalization", [floats(2, 6, 8), floats(2, 6, 8), floats(8), floats(8), floats(8)], 4, {"epsilon": 1e-5}),
    ("SkipSimplifiedLayerNormalization", [floats(2, 6, 8), floats(2, 6, 8), floats(8), floats(8)], 4, {"epsilon": 1e-5}),
    ("EmbedLayerNormalization",
     [integers(0, 20, (2, 6), "i4"), integers(0, 2, (2, 6), "i4"), floats(20, 8), floats(10, 8), floats(2, 8), floats(8),
      floats(8), MASK], 2, {"epsilon": 1e-5}),
    ("FusedMatMul", [floats(2, 5, 3), floats(2, 4, 5)], 1, {"transA": 1, "transB": 1, "alpha": 0.5}),
    ("FusedMatMul", [floats(5, 2, 3, 4), floats(2, 3, 4, 6)], 1, {"transBatchA": 1}),
    ("FusedMatMul", [floats(2, 3, 5, 4), floats(6, 2, 3, 4)], 1, {"transBatchB": 1, "transB": 1}),
    ("FusedMatMul", [floats(4, 2, 5), floats(4, 2, 6)], 1, {"transBatchA": 1, "transBatchB": 1, "transA": 1}),
    ("FusedGemm", [floats(3, 4), floats(5, 4), floats(5)], 1,
     {"transB": 1, "activation": "LeakyRelu", "activation_alpha": 0.1}),
    ("FusedConv", [floats(1, 3, 8, 8), floats(4, 3, 3, 3), floats(4)], 1, {"activation": "Relu", "pads": [1, 1, 1, 1]}),
    ("FusedConv", [floats(1, 3, 8, 8), floats(4, 3, 1, 1), floats(4), floats(1, 4, 8, 8)], 1, {"activation": "Relu"}),
    ("FusedConv", [floats(1, 3, 8, 8), floats(4, 3, 1, 1)], 1, {"activation": "Clip", "activation_params": [-0.5, 0.5]}),
    ("Attention", [floats(2, 6, 32), floats(32, 96), floats(96)], 1, {"num_heads": 4}),
    ("Attention", [floats(2, 6, 32), floats(32, 96), floats(96), MASK], 1, {"num_heads": 4}),
    ("Attention", [floats(2, 6, 32), floats(32, 96), floats(96), lengths(6, 3)], 1, {"num_heads": 4}),
    ("Attention", [floats(2, 6, 32), floats(32, 96), floats(96)], 1, {"num_heads": 4, "unidirectional": 1}),
    ("Attention", [floats(2, 3, 32), floats(32, 96), floats(96), None, PAST], 2, {"num_heads": 4, "unidirectional": 1}),
    ("MultiHeadAttention", [floats(2, 6, 32), floats(2, 7, 32), floats(2, 7, 32), floats(96)], 1, {"num_heads": 4}),
    ("MultiHeadAttention", [floats(2, 6, 32), floats(2, 6, 32), floats(2, 6, 32), None, MASK], 1, {"num_heads": 4}),
    ("MultiHeadAttention", [floats(2, 6, 32), floats(2, 6, 32), floats(2, 6, 32)], 1,
     {"num_heads": 4, "unidirectional": 1}),
    ("MultiHeadAttention", [floats(2, 3, 32), floats(2, 3, 32), floats(2, 3, 32), None, None, None, PAST[0], PAST[1]], 3,
     {"num_heads": 4}),
    ("GroupQueryAttention", [floats(2, 6, 32), floats(2, 6, 16), floats(2, 6, 16), None, None, lengths(5, 5), lengths(6)], 3,
     {"num_heads": 4, "kv_num_heads": 2}),
    ("GroupQueryAttention",
     [floats(2, 6, 64), floats(2, 6, 32), floats(2, 6, 32), None, None, lengths(5, 5), lengths(6), WIDE_COS, WIDE_SIN], 3,
     {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}),
    ("GroupQueryAttention",
     [floats(2, 6, 64), floats(2, 6, 32), floats(2, 6, 32), None, None, lengths(5, 3), lengths(6), WIDE_COS, WIDE_SIN], 3,
     {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1, "rotary_interleaved": 1, "scale": 0.2}),
    ("GroupQueryAttention",
     [floats(1, 1, 64), floats(1, 1, 32), floats(1, 1, 32), floats(1, 2, 5, 16), floats(1, 2, 5, 16), lengths(5), lengths(6),
      WIDE_COS, WIDE_SIN], 3, {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}),
    ("GroupQueryAttention", [floats(1, 6, 128), None, None, None, None, lengths(5), lengths(6), WIDE_COS, WIDE_SIN], 3,
     {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}),
    ("GroupQueryAttention",
     [floats(1, 6, 32), floats(1, 6, 16), floats(1, 6, 16), None, None, lengths(5), lengths(6)], 3,
     {"num_heads": 4, "kv_num_heads": 2, "local_window_size": 3}),
    ("RotaryEmbedding", [floats(2, 6, 32), np.array([3], "i8"), COS, SIN], 1, {"num_heads": 4}),
    ("RotaryEmbedding", [floats(2, 4, 6, 8), integers(0, 20, (2, 6), "i8"), COS, SIN], 1, {"interleaved": 1}),
    ("RotaryEmbedding", [floats(2, 6, 32), integers(0, 20, (2, 6), "i8"), COS, SIN], 1, {}),
    ("MatMulNBits", [floats(3, 64), {"c": integers(0, 256, (5, 2, 16))}, {"c": floats(10)}], 1,
     {"K": 64, "N": 5, "bits": 4, "block_size": 32}),
    ("MatMulNBits", [floats(3, 50), {"c": integers(0, 256, (5, 2, 16))}, {"c": floats(10)},
     {"c": integers(0, 256, (5,))}], 1,
     {"K": 50, "N": 5, "bits": 4, "block_size": 32}),
    ("MatMulNBits", [floats(3, 64), {"c": integers(0, 256, (5, 2, 32))}, {"c": floats(10)}], 1,
     {"K": 64, "N": 5, "bits": 8, "block_size": 32}),
    ("DynamicQuantizeMatMul", [floats(3, 8), {"c": integers(-127, 128, (8, 5), "i1")}, {"c": floats(5)}, None, floats(5)],
     1, {}),
    ("QLinearAdd", [integers(0, 256, (3, 8)), *number(0.02, 120), integers(0, 256, (3, 8)), *number(0.03, 100),
     *number(0.04, 128)],
     1, {}),
    ("QLinearMul", [integers(0, 256, (3, 8)), *number(0.02, 120), integers(0, 256, (8,)), *number(0.03, 100),
     *number(0.06, 128)],
     1, {}),
    ("QLinearSigmoid", [integers(0, 256, (3, 8)), *number(0.05, 120), *number(1 / 256, 0)], 1, {}),
    ("QLinearLeakyRelu", [integers(0, 256, (3, 8)), *number(0.05, 120), *number(0.05, 10)], 1, {"alpha": 0.1}),
    ("QLinearSoftmax", [integers(0, 256, (3, 8)), *number(0.05, 120), *number(1 / 256, 0)], 1, {"axis": -1, "opset": 13}),
    ("QLinearAveragePool", [integers(0, 256, (2, 3, 8, 8)), *number(0.05, 120), *number(0.05, 120)], 1,
     {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ("QLinearGlobalAveragePool", [integers(0, 256, (2, 3, 8, 8)), *number(0.05, 120), *number(0.03, 120)], 1, {}),
    ("QLinearConcat", [*number(0.05, 120), integers(0, 256, (2, 3)), *number(0.05, 100), integers(0, 256, (2, 4)),
                       *number(0.02, 20)], 1, {"axis": 1}),
    ("QGemm", [integers(0, 256, (3, 8)), *number(0.02, 120), {"c": integers(-127, 128, (5, 8), "i1")}, np.float32(0.03),
               np.int8(0), {"c": integers(-999, 999, (5,), "i4")}, *number(0.6, 128)], 1, {"transB": 1}),
    ("MatMulIntegerToFloat",
     [integers(0, 256, (3, 8)), {"c": integers(-127, 128, (8, 5), "i1")}, floats(1)[0], floats(1)[0], np.uint8(100)], 1, {}),
]


def model_of(op, given, outputs, attributes):
    names, inputs, constants, feed = [], [], [], {}
    for number, each in enumerate(given):
        if each is None:
            names.append("")
            continue
        names.append(f"i{number}")
        array = np.asarray(each["c"] if isinstance(each, dict) else each)
        if isinstance(each, dict):
            constants.append(numpy_helper.from_array(array, names[-1]))
        else:
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            inputs.append(helper.make_tensor_value_info(names[-1], kind, array.shape))
            feed[names[-1]] = array
    results = [f"o{number}" for number in range(outputs)]
    if op.startswith("Skip"):
        results[1] = results[2] = ""
    node = helper.make_node(op, names, results, "node", domain="com.microsoft", **attributes)
    kept = [name for name in results if name]
    lengths_too = op == "EmbedLayerNormalization"
    plain = TensorProto.UINT8 if op.startswith(("QLinear", "QGemm")) else TensorProto.FLOAT
    kinds = [TensorProto.INT32 if lengths_too and name == "o1" else plain for name in kept]
    declared = [helper.make_tensor_value_info(name, kind, None) for name, kind in zip(kept, kinds)]
    graph = helper.make_graph([node], "graph", inputs, declared, constants)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), feed


def difference(row):
    model, feed = model_of(*row)
    data = model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    theirs = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, feed)
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        file.write(data)
        file.flush()
        loaded = plugrad.onnx.load(file.name)  # keeps the file open
    worst = 0.0
    for _ in range(2):
        for a, b in zip(loaded.run(None, feed), theirs):
            if a.shape != b.shape:
                raise ValueError(f"shape {a.shape}, not {b.shape}")
            worst = max(worst, float(np.abs(a.astype("f8") - b).max() / (np.abs(b).max() or 1)))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    wrong = 0
    for row in ROWS:
        if only not in row[0]:
            continue
        arrays = [each["c"] if isinstance(each, dict) else each for each in row[1]]
        shapes = ", ".join("-" if each is None else str(np.shape(each)) for each in arrays)
        try:
            worst = difference(row)
        except Exception as error:  # one row that fails does not hide the others
            print(f"{row[0]} {shapes} {row[3]}: {type(error).__name__}: {str(error)[:300]}")
            wrong += 1
            continue
        is_wrong = worst > (1 / 150 if row[0].startswith("Q") else 1e-5)
        wrong += is_wrong
        print(f"{row[0]} {shapes} {row[3]}: {worst:.1e}{'  WRONG' if is_wrong else ''}")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
