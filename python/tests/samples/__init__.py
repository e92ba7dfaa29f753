"""A table of all ops with random arguments and the expected results."""
from . import (
    activations, algebra, arithmetic, arrangement, elementwise, further, grids, indexing, integers, layers, losses, margins,
    moments, networks, order, quantiles, quantized, rearrangement, reductions, resampling, sets, spatial, special)
from .case import Call, Case, Operand
from .sample import Sample

TOPICS = (elementwise, integers, reductions, order, arrangement, indexing, rearrangement, algebra, networks, losses,
          activations, arithmetic, margins, moments, quantiles, quantized, sets, grids, layers, special, further,
          spatial, resampling)
ROWS = [row for topic in TOPICS for row in topic.ROWS]
# Ops without a row, with the reason or the place of their tests.
PHILOX = "random numbers: tests/core/random_test.cpp compares them with Philox"
SAMPLING = "random numbers: tests/core/sampling_test.cpp"
WITHOUT = {
    "rand": PHILOX, "randn": PHILOX, "normal": PHILOX,
    **dict.fromkeys(["bernoulli", "exponential", "multinomial", "rand_like", "randint", "randint_like", "randn_like",
                     "randperm"], SAMPLING),
    "sum_to_size": "python/tests/test_parameters.py",
    **dict.fromkeys(["adjoint", "complex", "conj", "imag", "polar", "real", "view_as_complex", "view_as_real"],
                    "complex numbers: python/tests/test_complex.py"),
    "quantize": "python/tests/test_quantization.py",
    **dict.fromkeys(["alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout", "gumbel_softmax"],
                    "random numbers: tests/core/networks_test.cpp"),
    "empty": "its elements have no particular values", "empty_like": "its elements have no particular values",
    "clip_grad_norm_": "works on gradients in place: tests/core/clipping_test.cpp",
    "clip_grad_value_": "works on gradients in place: tests/core/clipping_test.cpp",
    "broadcast_shapes": "takes and returns shapes: python/tests/test_ops.py"}

__all__ = ["Call", "Case", "Operand", "ROWS", "Sample", "WITHOUT"]
