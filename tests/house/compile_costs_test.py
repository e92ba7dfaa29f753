"""The test of costs can fail: it reports counts above a bound, and no count within its bound."""
import tempfile
import unittest
from pathlib import Path

from compile_costs import count_lines, faults, lines_with, objects, tool_sources


class CompileCosts(unittest.TestCase):
    def test_only_lines_of_code_count(self):
        self.assertEqual(count_lines('# 1 "file"\n\nint x;\n   \n  int y;\n#pragma GCC\n'), 2)

    def test_a_heavy_header_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "light.hpp").write_text("#pragma once\n#include <cstdint>\n")
            (root / "heavy.hpp").write_text("#pragma once\n#include <cstdint>\n#include <regex>\n")
            light, heavy = lines_with(root, "light.hpp"), lines_with(root, "heavy.hpp")
        self.assertLess(light, 2000)
        self.assertGreater(heavy, light + 20000)

    def test_each_source_of_the_tools_counts_but_the_wrappers(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name in ("tools/plugrad/json.cpp", "tools/plugrad/eval.cpp", "tools/trial/json.cpp", "core/io/file.cpp"):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text("#include <cstdint>\n")
            self.assertEqual(tool_sources(root), ["tools/plugrad/eval.cpp", "tools/trial/json.cpp"])
            self.assertGreater(lines_with(root, "tools/plugrad/eval.cpp"), 50)

    def test_counts_above_their_bounds_are_faults(self):
        self.assertEqual(faults({"a": 3, "b": 4}, {"a": 3, "b": 3}, "lines"), ["b: 4 lines, at most 3"])

    def test_objects_are_found_below_the_product(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name in ("core/CMakeFiles/a.dir/a.cpp.o", "tests/b.cpp.o"):
                (root / name).parent.mkdir(parents=True)
                (root / name).write_bytes(b"12345")
            self.assertEqual(objects(root), {"core/CMakeFiles/a.dir/a.cpp.o": 5})


if __name__ == "__main__":
    unittest.main()
