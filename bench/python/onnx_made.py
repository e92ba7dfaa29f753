"""Makes ONNX models with random weights for onnx_models.py: single convolutions, ResNet-18, and recurrent layers.

onnx_made.py FOLDER

The package onnx must be installed. FOLDER/NAME.onnx is a model, and FOLDER/NAME/in-0.npy its input.
"""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(0)

# Of one image: the name, channels, results, the side of the window, the side of the image, the stride.
CONVOLUTIONS = [("conv 64-64 3x3", 64, 64, 3, 56, 1), ("conv 128-128 3x3", 128, 128, 3, 28, 1),
                ("conv 256-256 3x3", 256, 256, 3, 14, 1), ("conv 512-512 3x3", 512, 512, 3, 7, 1),
                ("conv 64-128 3x3 stride 2", 64, 128, 3, 56, 2), ("conv 64-256 1x1", 64, 256, 1, 56, 1),
                ("conv 256-64 1x1", 256, 64, 1, 56, 1), ("conv 512-512 1x1", 512, 512, 1, 14, 1),
                ("conv 3-64 7x7 stride 2", 3, 64, 7, 224, 2)]
# Batch, width and length; 64 features.
RECURRENT = [(1, 128, 50), (1, 256, 50), (8, 128, 50), (1, 64, 200)]


def weights(*shape):
    return (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype("f4")


class Network:
    """A graph of values with names."""

    def __init__(self, *shape):
        self.shape, self.nodes, self.constants = shape, [], []

    def constant(self, array):
        self.constants.append(numpy_helper.from_array(array, f"c{len(self.constants)}"))
        return self.constants[-1].name

    def add(self, op, *inputs, **attributes):
        result = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [result], **attributes))
        return result

    def convolution(self, x, channels, results, side, stride=1):
        pads = [side // 2] * 4
        return self.add("Conv", x, self.constant(weights(results, channels, side, side)), self.constant(weights(results)),
                        kernel_shape=[side] * 2, strides=[stride] * 2, pads=pads)

    def save(self, folder, name, result):
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
                                  [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        name = name.replace(" ", "_")
        onnx.save(onnx.shape_inference.infer_shapes(model), folder / f"{name}.onnx")
        (folder / name).mkdir(exist_ok=True)
        np.save(folder / name / "in-0.npy", random.standard_normal(self.shape).astype("f4"))


def block(net, x, channels, results, stride):
    """Two convolutions and a sum (He et al., 2015), with batch norms folded."""
    first = net.add("Relu", net.convolution(x, channels, results, 3, stride))
    second = net.convolution(first, results, results, 3)
    around = x if stride == 1 and channels == results else net.convolution(x, channels, results, 1, stride)
    return net.add("Relu", net.add("Add", second, around))


def resnet18(folder):
    net = Network(1, 3, 224, 224)
    x = net.add("Relu", net.convolution("x", 3, 64, 7, 2))
    x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for results in (64, 128, 256, 512):
        x = block(net, x, channels, results, 1 if results == 64 else 2)
        x, channels = block(net, x, results, results, 1), results
    x = net.add("Flatten", net.add("GlobalAveragePool", x))
    net.save(folder, "ResNet-18", net.add("Gemm", x, net.constant(weights(512, 1000)), net.constant(weights(1000))))


def recurrent(folder, kind, gates, batch, width, length):
    net = Network(length, batch, 64)
    given = [net.constant(weights(1, gates * width, columns)) for columns in (64, width)]
    bias = net.constant(weights(1, 2 * gates * width))
    all_ = net.add(kind, "x", *given, bias, hidden_size=width, **({"linear_before_reset": 1} if kind == "GRU" else {}))
    net.save(folder, f"{kind} {length} steps {width} wide batch {batch}", all_)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, channels, results, side, image, stride in CONVOLUTIONS:
        net = Network(1, channels, image, image)
        net.save(folder, name, net.convolution("x", channels, results, side, stride))
    resnet18(folder)
    for kind, gates in (("LSTM", 4), ("GRU", 3)):
        for batch, width, length in RECURRENT:
            recurrent(folder, kind, gates, batch, width, length)


main()
