"""Arguments at the edges of 64 bits: a call returns the correct result or raises an error, at once, and never ends the
process."""
import os
import subprocess
import sys
from pathlib import Path

import plugrad
import plugrad.nn.functional as F  # noqa: N812
import pytest

HUGE = 2**63 - 1
SECONDS = os.environ.get("PLUGRAD_ARGUMENT_SECONDS", "60")


def image(*shape):
    return plugrad.ones(*shape)


# Products and sums of extents, paddings and factors that exceed 64 bits raise ValueError.
REFUSED = {
    "bytes of a sum": lambda: plugrad.ones(1, 1).expand(2**31, 1) + plugrad.ones(1, 1).expand(1, 2**31),
    "bytes that wrap to 4096": lambda: plugrad.ones(1).expand(14936081408, 1) + plugrad.ones(1).expand(1, 308761441),
    "elements of a view": lambda: plugrad.ones(1, 1).expand(2**32, 2**32),
    "elements of a sum": lambda: plugrad.ones(1, 1).expand(2**32, 1) + plugrad.ones(1, 1).expand(1, 2**32),
    "elements of a product": lambda: plugrad.ones(1, 1).expand(2**32, 1) @ plugrad.ones(1, 1).expand(1, 2**32),
    "padding of avg_pool2d": lambda: plugrad.avg_pool2d(image(1, 1, 4, 4), 2, padding=HUGE),
    "padding of conv2d": lambda: plugrad.conv2d(image(1, 1, 4, 4), image(1, 1, 2, 2), padding=HUGE),
    "padding of conv_transpose2d": lambda: plugrad.conv_transpose2d(image(1, 1, 4, 4), image(1, 1, 2, 2), padding=2**62),
    "dilation of conv1d": lambda: plugrad.conv1d(image(1, 1, 4), image(1, 1, 3), dilation=HUGE),
    "factor of pixel_shuffle": lambda: plugrad.pixel_shuffle(image(1, 4, 2, 2), 2**32),
    "factor of pixel_unshuffle": lambda: plugrad.pixel_unshuffle(image(1, 4, 0, 0), HUGE),
    "pads": lambda: plugrad.pad(image(4), [HUGE, 1]),
    "pads below": lambda: plugrad.pad(image(4), [-2**63, -1]),
    "repeats": lambda: plugrad.repeat_interleave(image(4), HUGE),
    "rows of tril_indices": lambda: plugrad.tril_indices(2**32, 2**32),
    "combinations": lambda: plugrad.combinations(plugrad.arange(100), 50),
    "sections": lambda: plugrad.tensor_split(image(4), 2**62),
    "chunks": lambda: plugrad.chunk(image(0), 2**62),
    "size of adaptive_avg_pool1d": lambda: plugrad.adaptive_avg_pool1d(image(1, 1, 3), 2**40),
    "size of interpolate": lambda: F.interpolate(image(1, 1, 2, 2), size=(10**9, 1)),
    "factor of interpolate": lambda: F.interpolate(image(1, 1, 2, 2), scale_factor=1e300),
    "order of polygamma": lambda: plugrad.polygamma(10**6, image(1)),
    "generator": lambda: plugrad.set_generator_state(()),
    "name of a dtype": lambda: plugrad.ones(1, dtype="\ud800"),
    "name of a device": lambda: plugrad.ones(1, device="\ud800"),
    "path": lambda: plugrad.save_npz({"a": image(1)}, "keep.npz\0.safetensors"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_numbers_out_of_range_are_refused(name):
    with pytest.raises(ValueError):
        REFUSED[name]()


# Large numbers that do not affect the elements.
RIGHT = {
    "stride of max_pool2d": (lambda: plugrad.max_pool2d(image(1, 1, 2, 2), 2, stride=10**9), [[[[1.0]]]]),
    "largest stride": (lambda: plugrad.max_pool2d(image(1, 1, 3, 3), 2, stride=HUGE, ceil_mode=True), [[[[1.0]]]]),
    "dilation of one element": (lambda: plugrad.avg_pool1d(image(1, 1, 2), 1, stride=HUGE), [[[1.0]]]),
    "stride of conv1d": (lambda: plugrad.conv1d(image(1, 1, 3), image(1, 1, 2), stride=HUGE), [[[2.0]]]),
    "dilation of conv1d": (lambda: plugrad.conv1d(image(1, 1, 2), image(1, 1, 1), dilation=HUGE), [[[1.0, 1.0]]]),
    "offset of tril_indices": (lambda: plugrad.tril_indices(1, 2, HUGE), [[0, 0], [0, 1]]),
    "offset of triu_indices": (lambda: plugrad.triu_indices(1, 2, -2**63), [[0, 0], [0, 1]]),
    "combinations of one": (lambda: plugrad.combinations(plugrad.arange(1), 70, True)[0, :2], [0, 0]),
    "order of diff": (lambda: plugrad.diff(plugrad.arange(3), HUGE), []),
    "shift": (lambda: plugrad.roll(plugrad.arange(3), -2**63), [2, 0, 1]),
    "no elements": (lambda: plugrad.ones(1, 1).expand(0, 2**40).expand(0, 2**40).sum(), 0.0)}


@pytest.mark.parametrize("name", RIGHT)
def test_unused_numbers_may_be_large(name):
    made, expected = RIGHT[name]
    assert made().tolist() == expected


def test_a_path_with_a_zero_byte_overwrites_nothing(tmp_path):
    kept = tmp_path / "keep.npz"
    kept.write_bytes(b"kept")
    for save in (plugrad.save_npz, plugrad.save):
        with pytest.raises(ValueError, match="path"):
            save({"a": plugrad.ones(1)}, f"{kept}\0.safetensors")
    assert kept.read_bytes() == b"kept"


@pytest.mark.parametrize("call", [
    lambda x: plugrad.autograd.grad([1], x), lambda x: plugrad.autograd.grad(x.sum(), [1]),
    lambda x: plugrad.autograd.grad(x.sum(), x, [1]), lambda x: plugrad.autograd.backward([1]),
    lambda x: x.sum().backward([1]), lambda x: plugrad.set_generator_state(("a", 1)),
    lambda x: plugrad.optim.SGD([{"params": [x], 1: 2}], lr=0.1)])
def test_objects_inside_of_arguments_have_types(call):
    x = plugrad.tensor([1.0], requires_grad=True)
    with pytest.raises((TypeError, ValueError), match=r"^\[") as raised:
        call(x)
    assert "bad_cast" not in str(raised.value)


def test_memory_that_ends_inside_of_a_graph_is_an_error():
    program = """
import resource, plugrad
y = x = plugrad.ones(4, requires_grad=True)
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
try:
    while True: y = y * 1.0
except MemoryError: print("raised")
del y
print((x * 2).sum().item())
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.split()) == (0, ["raised", "8.0"]), ran.stderr


def test_no_arguments_end_the_process():
    ran = subprocess.run([sys.executable, str(Path(__file__).with_name("argument_fuzz.py")), "--seconds", SECONDS],
                         capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-1000:]
    assert " 0 went wrong" in ran.stdout


def test_a_second_interpreter_is_refused():
    pytest.importorskip("_xxsubinterpreters")
    program = """
import _xxsubinterpreters as interpreters, plugrad
other = interpreters.create(isolated=False)
try:
    interpreters.run_string(other, "import plugrad")
except interpreters.RunFailedError as error:
    assert "ImportError" in str(error) and "one" in str(error), error
    print("refused")
print((plugrad.ones(2) * 2).sum().item())
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.split()) == (0, ["refused", "4.0"]), ran.stderr


def test_bools_of_other_libraries_are_true_or_false():
    numpy = pytest.importorskip("numpy")
    bytes_ = numpy.array([[0, 2, 255], [1, 0, 128]], dtype="uint8")
    x = plugrad.from_dlpack(bytes_.view("bool"))
    assert x.dtype == "bool" and x.long().sum().item() == 4 and x.tolist() == [[False, True, True], [True, False, True]]
    clean = numpy.array([True, False])
    shared = plugrad.from_dlpack(clean)
    clean[1] = True
    assert shared.tolist() == [True, True]
