#!/usr/bin/env python3
"""Writes the measured table of README.md from files that bench/compare.py and the programs in bench/python wrote.

readme_table.py [--cpp FILE] [--python FILE] [--compiled FILE] [--fusions FILE] [--readme README.md] [--check]

Two comments enclose the table, and the first comment names the files, which are in bench/results. The script reads the named
file again for each option that is not given. --check changes nothing: it exits with status 1 if the table differs from the
files.
"""
import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MARKED = re.compile(r"<!-- measured: (\S+) (\S+) (\S+) (\S+) -->\n.*?<!-- end of measured -->\n", re.DOTALL)
NANOSECONDS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}

# Each row: its label in the README, its name in the file, and the peers, of which the fastest counts.
LIBTORCH = ("libtorch",)
CPP_ROWS = [
    ("add, one element", "add/1", LIBTORCH),
    ("add, one element, recorded for the backward pass", "add_recorded/1", LIBTORCH),
    ("one product and its backward pass", "mul_and_its_backward/1", LIBTORCH),
    ("add, 10^6 elements", "add/1000000", LIBTORCH),
    ("tanh, 10^6 elements", "tanh/1000000", LIBTORCH),
    ("sum of relu(x) * x, 10^6 elements, forward and backward", "relu_mul_sum_forward_backward/1000000", LIBTORCH),
    ("matrix product, 1024 x 1024", "matmul/1024", LIBTORCH),
    ("training step, MLP 784-512-512-10, batch 256, SGD", "mlp_step_sgd/256", LIBTORCH),
    ("training step, the same with Adam", "mlp_step_adam/256", LIBTORCH),
]
PYTHON_ROWS = [
    ("Python: add, one element, recorded", "add, recorded", ("PyTorch",)),
    ("Python: one product and its backward pass", "mul and its backward", ("PyTorch",)),
    ("Python: training step of micrograd's moons demo, with `Value`", "moons: a step with Value", ("micrograd",)),
]
# torch.compile, PyTorch eager, and JAX, which compiles whole steps.
COMPILERS = ("torch.compile", "PyTorch", "JAX")
COMPILED_ROWS = [
    ("Python, compiled: 100 steps of the moons demo, each loss read", "moons: 100 steps, f32, loss read", COMPILERS),
    ("Python, compiled: training step, MLP as above, SGD", "MLP 784-512-512-10, SGD", COMPILERS),
    ("Python, compiled: the same with Adam", "MLP 784-512-512-10, Adam", COMPILERS),
]
FUSION_ROWS = [
    ("Python, compiled: sum of relu(x) * x as above", "(relu(x) x).sum(), forward + backward, 1e6", COMPILERS),
    ("Python, compiled: layer norm of 1000 x 1000, forward and backward", "layer norm of 1000x1000, forward + backward",
     COMPILERS),
]
# Each file: its option, the program that writes it, its name in the README, the title of plugrad's column, and the rows.
FILES = [
    ("cpp", "bench/compare.py", "C++", "plugrad cpu", CPP_ROWS),
    ("python", "bench/python/small_ops.py", "Python", "plugrad ", PYTHON_ROWS),
    ("compiled", "bench/python/compiled_steps.py", "compiled steps", "plugrad ", COMPILED_ROWS),
    ("fusions", "bench/python/fusions.py", "fusions", "plugrad ", FUSION_ROWS),
]


class Results:
    """A file of results: the first table in it, and the line above that names the machine."""

    def __init__(self, path):
        text = (ROOT / path).read_text(encoding="utf-8")
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
        self.path, self.titles, self.rows = path, cells[0], {row[0]: row for row in cells[2:]}
        self.machine = text.splitlines()[0].removeprefix("- ")

    def time(self, row, title):
        """The median as nanoseconds, with the column's title, of the fastest column that begins with `title`."""
        if row not in self.rows:
            sys.exit(f"readme_table.py: {self.path} has no row '{row}'; measure it again with all rows")
        found = []
        for name, cell in zip(self.titles, self.rows[row]):
            value = re.match(r"([0-9.e+-]+) (ns|us|ms|s)\b", cell)
            if name.startswith(title) and value:
                found.append((float(value[1]) * NANOSECONDS[value[2]], name.split(",")[0]))
        if not found:
            sys.exit(f"readme_table.py: {self.path} has no time of {title} in the row '{row}'; install the peers first")
        return min(found)


def text_of(nanoseconds):
    for unit in ("s", "ms", "us"):
        if nanoseconds >= NANOSECONDS[unit]:
            return f"{nanoseconds / NANOSECONDS[unit]:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def lines_of(results, title, rows):
    for label, row, peers in rows:
        ours = results.time(row, title)[0]
        theirs, name = min(results.time(row, peer) for peer in peers)
        ratio = theirs / ours
        yield f"| {label} | {text_of(ours)} | {text_of(theirs)} ({name}) | {ratio:.{2 if ratio < 10 else 0}f} |"


def table(paths):
    """The text between the comments."""
    lines = ["| CPU, one thread, f32; medians | plugrad | peer | peer / plugrad |", "|---|---|---|---|"]
    for path, (_, _, _, title, rows) in zip(paths, FILES):
        lines += lines_of(Results(path), title, rows)
    links = ", ".join(f"[{name}]({path})" for path, (_, _, name, _, _) in zip(paths, FILES))
    lines += ["", f"Machine: {Results(paths[0]).machine}. All rows and their spread: {links}.", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, program, _, _, _ in FILES:
        parser.add_argument(f"--{option}", help=f"a file of {program}")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    before = options.readme.read_text(encoding="utf-8")
    marked = MARKED.search(before)
    if not marked:
        sys.exit(f"readme_table.py: {options.readme} has no <!-- measured: and {len(FILES)} files --> and "
                 "<!-- end of measured -->")
    paths = [getattr(options, each[0]) or named for each, named in zip(FILES, marked.groups())]
    block = f"<!-- measured: {' '.join(paths)} -->\n{table(paths)}<!-- end of measured -->\n"
    after = before[:marked.start()] + block + before[marked.end():]
    if options.check and after != before:
        sys.exit(f"readme_table.py: the table in {options.readme} is not that of its files; run bench/readme_table.py")
    if not options.check:
        options.readme.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
