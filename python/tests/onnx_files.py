"""Makes small ONNX files field by field, for tests: onnx.proto3."""
import numpy as np

TYPES = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int32": 6, "int64": 7, "bool": 9, "uint32": 12, "uint64": 13}


def varint(value):
    value &= (1 << 64) - 1
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def number(field, value):
    return varint(field << 3) + varint(value)


def field(number_, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(number_ << 3 | 2) + varint(len(data)) + data


def fields(number_, all_):
    return b"".join(field(number_, each) for each in all_)


def tensor(name, array):
    array = np.asarray(array)
    dims = b"".join(number(1, each) for each in array.shape)
    return dims + number(2, TYPES[array.dtype.name]) + field(8, name) + field(9, array.tobytes())


def value(name, dtype, shape):
    extents = [field(1, number(1, each) if isinstance(each, int) else field(2, each)) for each in shape]
    return field(1, name) + field(2, field(1, number(1, TYPES[dtype]) + field(2, b"".join(extents))))


def sequence(name, dtype):
    return field(1, name) + field(2, field(4, field(1, field(1, number(1, TYPES[dtype])))))


def node(op, inputs, outputs, **integers):
    attributes = [field(1, name) + number(3, integer) + number(20, 2) for name, integer in integers.items()]
    return fields(1, inputs) + fields(2, outputs) + field(3, f"{op} node") + field(4, op) + fields(5, attributes)


def write(path, nodes, inputs, outputs, initializers=(), opset=18):
    graph = fields(1, nodes) + field(2, "graph") + fields(5, initializers) + fields(11, inputs) + fields(12, outputs)
    path.write_bytes(number(1, 9) + field(7, graph) + field(8, field(1, "") + number(2, opset)))
    return path
