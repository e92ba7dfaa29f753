"""The README's table matches the recorded results, and the check of the table can fail.

readme_table_test.py
"""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def check(readme):
    command = [sys.executable, ROOT / "bench/readme_table.py", "--check", "--readme", readme]
    return subprocess.run(command, capture_output=True, text=True)


class ReadmeTable(unittest.TestCase):
    def changed(self, old, new):
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        self.assertIn(old, text)
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "README.md"
            copy.write_text(text.replace(old, new, 1), encoding="utf-8")
            return check(copy)

    def test_the_table_is_that_of_its_files(self):
        done = check(ROOT / "README.md")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_changed_table_is_found(self):
        self.assertIn("run bench/readme_table.py", self.changed("| add, one element |", "| add, two elements |").stderr)
        self.assertIn("has no <!-- measured", self.changed("<!-- end of measured -->", "").stderr)


if __name__ == "__main__":
    unittest.main()
