"""The test of the include arrows can fail: it reports each include planted here, and no allowed include."""
import tempfile
import unittest
from pathlib import Path

import rooms
from include_arrows import violations

# Files that includes may name; their contents do not matter.
TARGETS = ["sdk/include/plugrad/sdk/abi.h", "sdk/conformance/suite.hpp", "core/include/plugrad/plugrad.hpp",
           "core/include/plugrad/runtime/device.hpp", "core/include/plugrad/tensor/tensor.hpp",
           "core/include/plugrad/nn/module.hpp", "core/include/plugrad/io/npy.hpp", "core/runtime/streams/stream.hpp",
           "core/ops/rule.hpp", "backends/cpu/include/plugrad/backends/cpu.hpp", "backends/cpu/pool.hpp",
           "backends/reference/include/plugrad/backends/reference.hpp", "plugins/sim/include/plugrad/sim.hpp"]

ALLOWED = [
    ("core/runtime/plugins/loader.cpp", "<boost/dll/shared_library.hpp>"),
    ("core/runtime/plugins/loader.cpp", "<plugrad/sdk/abi.h>"),
    ("core/tensor/tensor.cpp", "<core/runtime/streams/stream.hpp>"),
    ("core/nn/linear.cpp", "<core/ops/rule.hpp>"),
    ("core/io/idx.cpp", "<zlib.h>"),
    ("core/training/fit.cpp", "<plugrad/nn/module.hpp>"),
    ("core/training/loader.cpp", "<plugrad/io/npy.hpp>"),
    ("core/include/plugrad/nn/sequential.hpp", "<plugrad/tensor/tensor.hpp>"),
    ("backends/cpu/simd.cpp", "<hwy/highway.h>"),
    ("backends/cpu/pool.cpp", '"pool.hpp"'),
    ("plugins/sim/sim.cpp", "<plugrad/backends/reference.hpp>"),
    ("plugins/cpu/cpu.cpp", "<plugrad/backends/cpu.hpp>"),
    ("tools/main.cpp", "<boost/program_options.hpp>"),
    ("bench/ops.cpp", "<benchmark/benchmark.h>"),
    ("python/module.cpp", "<nanobind/nanobind.h>"),
    ("python/module.cpp", "<plugrad/plugrad.hpp>"),
    ("tests/tensor/shape_test.cpp", "<gtest/gtest.h>"),
    ("tests/async/sim_test.cpp", "<plugrad/sim.hpp>"),
    ("sdk/conformance/main.cpp", "<plugrad/nn/module.hpp>"),
]

FORBIDDEN = [
    ("sdk/include/plugrad/sdk/extra.hpp", "<plugrad/runtime/device.hpp>"),  # the contract includes no other part
    ("sdk/include/plugrad/sdk/extra.hpp", "<unistd.h>"),
    ("core/runtime/device.cpp", "<plugrad/tensor/tensor.hpp>"),  # upwards
    ("core/include/plugrad/tensor/view.hpp", "<plugrad/nn/module.hpp>"),
    ("core/tensor/print.cpp", "<core/ops/rule.hpp>"),
    ("core/nn/data.cpp", "<plugrad/io/npy.hpp>"),  # sideways
    ("core/nn/all.cpp", "<plugrad/plugrad.hpp>"),
    ("core/training/fit.cpp", "<core/ops/rule.hpp>"),  # only the published headers of a room
    ("core/ops/relu.cpp", "<plugrad/backends/cpu.hpp>"),  # core and backends meet only in the contract
    ("backends/cpu/add.cpp", "<plugrad/runtime/device.hpp>"),
    ("backends/reference/add.cpp", "<backends/cpu/pool.hpp>"),
    ("plugins/cpu/cpu.cpp", "<plugrad/backends/reference.hpp>"),
    ("plugins/cpu/cpu.cpp", "<backends/cpu/pool.hpp>"),
    ("plugins/c11/c11.c", "<vector>"),
    ("tools/main.cpp", "<core/runtime/streams/stream.hpp>"),
    ("python/module.cpp", "<core/runtime/streams/stream.hpp>"),
    ("core/tensor/dlpack.cpp", "<Python.h>"),
    ("examples/plugin/npu.cpp", "<plugrad/plugrad.hpp>"),
    ("core/tensor/tensor.cpp", "<boost/dll/shared_library.hpp>"),  # external, in the wrong place
    ("core/ops/ops.cpp", "<boost/container/small_vector.hpp>"),
    ("core/nn/checkpoint.cpp", "<nlohmann/json.hpp>"),
    ("backends/cpu/matmul.cpp", "<cblas.h>"),
    ("backends/reference/exp.cpp", "<hwy/highway.h>"),
    ("core/runtime/runtime.cpp", "<boost/program_options.hpp>"),
    ("tools/train.cpp", "<gtest/gtest.h>"),
    ("tests/tensor/speed_test.cpp", "<benchmark/benchmark.h>"),
    ("core/tensor/tensor.cpp", "<plugrad/tensor/nowhere.hpp>"),  # no such file
    ("core/tensor/tensor.cpp", '"../runtime/stream.hpp"'),
    ("core/ops/table.cpp", "HEADER_NAMED_BY_A_MACRO"),
    ("core/shapes/shape.cpp", "<vector>"),  # a room that no rule names
    ("stray.cpp", "<vector>"),
]


# A file, its text, and the name of a higher room that the check finds in it, or None.
NAMES = [
    ("core/runtime/local.hpp", "struct Tensor;", "Tensor"),
    ("core/include/plugrad/runtime/device.hpp", "class Node;", "Node"),
    ("core/tensor/impl.hpp", "void show(const Value& v);", "Value"),
    ("core/autograd/node.hpp", "void* face = nullptr;", "face"),
    ("core/ops/run.cpp", "PyObject* made;", "PyObject"),
    ("core/nn/value.cpp", "PyObject* made;", "PyObject"),
    ("core/runtime/streams/stream.cpp", 'open("cpu");', '"cpu"'),
    ("core/nn/linear.cpp", 'Device("cuda");', '"cuda"'),
    ("core/tensor/impl.hpp", "Ref<Node> node;", None),  # the only allowed name
    ("core/autograd/node.cpp", "Node& node_of(const Tensor& x);", None),
    ("core/nn/value.cpp", "Value::Value(double data) {}", None),
    ("core/runtime/local.hpp", "// A Tensor, a Value and Python: words, and \"cpu\" among them.", None),
    ("core/runtime/streams/stream.cpp", 'log("cpu is slow, says Python");', None),
    ("tools/main.cpp", 'Device("cpu");', None),
]

# Files, and the place of the definition whose declaration is in another room's header, or None if there is no fault.
HEADERS = [
    ({"core/autograd/sum.hpp": "Tensor sum_to(const Tensor& x, const Shape& shape);\n",
      "core/ops/reduce.cpp": "\nTensor sum_to(const Tensor& a,\n              const Shape& b) {\n}\n"},
     "core/ops/reduce.cpp:2: "),
    ({"core/include/plugrad/tensor/tensor.hpp": "PLUGRAD_API void show(Tensor x, int digits = f(1, 2));\n",
      "core/nn/show.cpp": "[[gnu::noinline]] void show(Tensor x, int digits) {}\n"}, "core/nn/show.cpp:1: "),
    ({"core/autograd/sum.hpp": "Tensor sum_to(const Tensor& x, const Shape& shape);\n",
      "core/autograd/sum.cpp": "Tensor sum_to(const Tensor& x, const Shape& shape) {\n}\n",
      "core/ops/reduce.cpp": "Tensor sum_to(const Tensor& x, int axis) {\n}\n"}, None),  # another overload
    ({"core/include/plugrad/ops/views.hpp": "Tensor reshape(const Tensor& x);\n",
      "core/ops/views.cpp": "Tensor reshape(const Tensor& x) {\n}\n",
      "core/nn/value.cpp": "void f() {\n  return reshape(x);\n}\n"}, None),  # a call
]


class Rooms(unittest.TestCase):
    def test_names_from_above_are_found(self):
        for file, text, name in NAMES:
            with self.subTest(file=file, text=text):
                found = rooms.violations({file: f"// first\n{text}\n"})
                self.assertEqual([line.split(" is ")[0] for line in found], [f"{file}:2: {name}"] if name else [])

    def test_a_header_that_another_room_implements_is_found(self):
        for texts, place in HEADERS:
            with self.subTest(place=place):
                found = rooms.violations(texts)
                self.assertEqual(len(found), 1 if place else 0, found)
                self.assertTrue(not place or found[0].startswith(place), found)


class IncludeArrows(unittest.TestCase):
    def lines_for(self, file, include):
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            for target in TARGETS:
                (root / target).parent.mkdir(parents=True, exist_ok=True)
                (root / target).touch()
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_text(f"// planted\n#include {include}\n")
            found, seen = violations(root)
        self.assertEqual(seen, 1)
        return found

    def test_allowed_includes_pass(self):
        for file, include in ALLOWED:
            with self.subTest(file=file, include=include):
                self.assertEqual(self.lines_for(file, include), [])

    def test_planted_includes_are_found_with_file_and_line(self):
        for file, include in FORBIDDEN:
            with self.subTest(file=file, include=include):
                found = self.lines_for(file, include)
                self.assertEqual(len(found), 1)
                self.assertTrue(found[0].startswith(f"{file}:2: "), found)

    def test_build_trees_are_not_looked_at(self):
        with tempfile.TemporaryDirectory() as name:
            for folder in ("build", "build-asan", ".cache"):
                (Path(name) / folder).mkdir()
                (Path(name) / folder / "made.cpp").write_text("#include <cblas.h>\n")
            self.assertEqual(violations(Path(name)), ([], 0))


if __name__ == "__main__":
    unittest.main()
