"""Checks the limits of CONTRIBUTING.md: length of functions, lines and files, and one way to write a cast.

source_limits.py ROOT

Lines have 125 columns at most. Exempt are Markdown, whose tables cannot be wrapped, and the rows of the op table.
Casts between scalars are static_cast. T(1), a literal with a width, does not count as a cast, and C keeps its own casts.
"""
import ast
import sys
from collections import defaultdict
from pathlib import Path

import cxx

COLUMNS = 125
FUNCTION_LINES, FUNCTION_LINES_P90 = 40, 15
FILE_LINES, KERNEL_FILE_LINES = 400, 600
CXX = {".cpp", ".hpp", ".cu", ".cuh", ".inl"}
CODE = CXX | {".c", ".h", ".def", ".py", ".cmake", ".sh", ".in"}
PRODUCT = ("core/", "sdk/", "backends/", "plugins/", "tools/", "python/", "bridges/")


def sources(root):
    """The texts of the source files below root by their names: no build trees, no hidden directories."""
    found = {}
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        skipped = any(part.startswith(".") for part in parts) or parts[0] == "build" or parts[0].startswith("build-")
        if not skipped and (path.suffix in CODE or path.name == "CMakeLists.txt") and path.is_file():
            found[path.relative_to(root).as_posix()] = path.read_text(encoding="utf-8")
    return found


def suffix(name):
    return Path(name).suffix


def line_faults(name, text):
    for number, line in enumerate(text.splitlines(), 1):
        table_row = name.endswith(".def") and line.startswith("PLUGRAD_")
        if len(line) > COLUMNS and not table_row:
            yield f"{name}:{number}: {len(line)} columns; at most {COLUMNS}"


def file_faults(name, text):
    limit = KERNEL_FILE_LINES if name.startswith("backends/") else FILE_LINES
    lines = len(text.splitlines())
    if lines > limit and not name.startswith("sdk/include/"):
        yield f"{name}:1: {lines} lines; at most {limit}: give each topic a file"


def python_functions(text):
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return [cxx.Function(node.name, node.lineno, node.end_lineno - node.lineno + 1) for node in nodes]


def product_functions(texts):
    """The functions of the product as (file, function): all but tests, benchmarks and examples."""
    for name, text in texts.items():
        if name.startswith(PRODUCT) and not name.startswith(("python/tests/", "bridges/torch/tests/")):
            if suffix(name) in CXX | {".c", ".h"}:
                yield from ((name, function) for function in cxx.functions(text))
            elif suffix(name) == ".py":
                yield from ((name, function) for function in python_functions(text))


def function_faults(texts):
    found = list(product_functions(texts))
    for name, function in found:
        if function.lines > FUNCTION_LINES:
            yield f"{name}:{function.line}: {function.name} has {function.lines} lines; at most {FUNCTION_LINES}"
    lengths = sorted(function.lines for _, function in found)
    if lengths and lengths[len(lengths) * 9 // 10] > FUNCTION_LINES_P90:
        yield f"one function in ten has {lengths[len(lengths) * 9 // 10]} lines or more; at most {FUNCTION_LINES_P90}"


def scalar_names(texts):
    """For each folder the names of enumerations and of the contract's integers, without names that are also classes."""
    names, classes = set(), defaultdict(set)
    for name, text in texts.items():
        if suffix(name) in CXX | {".h"}:
            names |= cxx.enumerations(text)
            names |= cxx.aliases(text) if name.startswith("sdk/include/") else set()
            classes[Path(name).parent] |= cxx.classes(text)
    return lambda name: names - classes[Path(name).parent]


def cast_faults(texts):
    names_at = scalar_names(texts)
    for name, text in texts.items():
        if suffix(name) in CXX:
            for cast in cxx.casts(text, names_at(name)):
                yield f"{name}:{cast.line}: {cast.text.splitlines()[0]} is a cast; write static_cast<{cast.type}>"


def faults(texts):
    """One line for each violation of a limit."""
    found = []
    for name, text in texts.items():
        found += [*line_faults(name, text), *file_faults(name, text)]
    return found + [*function_faults(texts), *cast_faults(texts)]


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    texts = sources(Path(arguments[0]).resolve())
    found = faults(texts)
    for line in found:
        print(line)
    lengths = sorted(function.lines for _, function in product_functions(texts))
    print(f"{len(texts)} files, {len(lengths)} functions of the product, {len(found)} faults")
    if lengths:
        median, p90 = lengths[len(lengths) // 2], lengths[len(lengths) * 9 // 10]
        print(f"lines of a function: median {median}, p90 {p90}, most {lengths[-1]}")
    return 1 if found or not lengths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
