"""Builds examples/plugin-languages with the installed SDK, for each language whose compiler is installed: the plugins
conform and train.

languages_test.py BUILD
"""
import os
import shutil
import sys
import tempfile
import time
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/house"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import binaries  # noqa: E402
import install_test  # noqa: E402
from install_test import run  # noqa: E402

COMPILERS = {"zig": os.environ.get("ZIG", "zig").split()[0], "go": "go", "pascal": "fpc", "ada": "gnatmake"}


class Languages(unittest.TestCase):
    def test_each_language_conforms_and_trains(self):
        scratch = Path(tempfile.mkdtemp(prefix="plugrad-languages-")).resolve()
        self.addCleanup(shutil.rmtree, scratch)
        prefix = scratch / "installed"
        run(install_test.CMAKE, "--install", BUILD, "--prefix", prefix)
        settings = {"PKG_CONFIG_PATH": str(next(prefix.rglob("pkgconfig"))), "HOME": str(scratch / "home")}
        for language, compiler in COMPILERS.items():
            with self.subTest(language):
                if not shutil.which(compiler) or not shutil.which("pkg-config"):
                    self.skipTest(f"{compiler} is not installed")
                begun = time.monotonic()
                run(SOURCE / "examples/plugin-languages/build.sh", language, scratch / language, **settings)
                plugin = scratch / language / f"libplugrad-backend-{language}.so"
                self.assertEqual(binaries.plugin_faults(str(plugin)), [])
                said = run(prefix / "bin/plugrad-conform", "--require-tier0", "--train", "--jobs", "2", plugin)
                self.assertIn(", 0 failures", said)
                print(f"{language}: built, conforms and trains after {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    BUILD = Path(sys.argv.pop(1)).resolve()
    unittest.main()
