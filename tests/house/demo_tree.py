"""Runs scripts/demo.sh in a copy of the tree: it trains, states the limits of its plugin, builds only the parts that it
runs, and its plugin cannot be installed.

demo_tree.py ROOT
"""
import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1))


def run(folder, *command):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


class DemoTree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.tree = Path(cls.scratch.name) / "plugrad"
        shutil.copytree(ROOT, cls.tree, ignore=shutil.ignore_patterns("build", "build-*", ".git"))
        cls.demo = run(cls.tree, "scripts/demo.sh")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_1_it_trains(self):
        self.assertEqual(self.demo.returncode, 0, self.demo.stdout + self.demo.stderr)
        results = json.loads((self.tree / "build/demo/results.json").read_text())
        self.assertGreater(results["test_accuracy"], 0.88)
        self.assertIn("this machine's instructions alone, and no linear algebra", self.demo.stdout)

    def test_2_it_builds_what_it_runs(self):
        self.assertFalse((self.tree / "build/bin/plugrad-conform").exists())
        self.assertFalse((self.tree / "build/tests").exists())

    def test_3_a_command_that_was_left_out_says_so(self):
        made = run(self.tree, "build/bin/plugrad", "new-plugin", "npu")
        self.assertEqual(made.returncode, 1)
        self.assertIn("built without the command new-plugin: configure with -DPLUGRAD_AUTHOR_TOOLS=ON", made.stderr)

    def test_4_the_plugin_is_not_installed(self):
        installed = run(self.tree, "cmake", "--install", "build", "--component", "backend-cpu", "--prefix", "installed")
        self.assertNotEqual(installed.returncode, 0)
        self.assertIn("configure with -DPLUGRAD_CPU_SIMD=all", " ".join(installed.stderr.split()))
        self.assertFalse(list((self.tree / "installed").rglob("*.so")))

    def test_5_the_sdk_can_be_installed(self):
        installed = run(self.tree, "cmake", "--install", "build", "--component", "sdk", "--prefix", "sdk-installed")
        self.assertEqual(installed.returncode, 0, installed.stdout + installed.stderr)
        names = {path.name for path in (self.tree / "sdk-installed").rglob("*")}
        self.assertLessEqual({"libplugrad-loops.a", "abi.h", "queue.hpp", "plugradConfig.cmake"}, names)


if __name__ == "__main__":
    unittest.main()
