"""A table of all ops with random arguments and the expected results."""
from . import algebra, arrangement, elementwise, integers, losses, networks, reductions
from .case import Call, Case, Operand
from .sample import Sample

ROWS = [row for topic in (elementwise, integers, reductions, arrangement, algebra, networks, losses) for row in topic.ROWS]
# Ops without a row, and where they are tested instead.
WITHOUT = {
    "rand": "random numbers: tests/core/random_test.cpp compares them with Philox",
    "randn": "random numbers: tests/core/random_test.cpp compares them with Philox",
    "clip_grad_norm_": "works on gradients in place: tests/core/clipping_test.cpp",
    "clip_grad_value_": "works on gradients in place: tests/core/clipping_test.cpp",
    "broadcast_shapes": "takes and returns shapes: python/tests/test_ops.py"}

__all__ = ["Call", "Case", "Operand", "ROWS", "Sample", "WITHOUT"]
