"""Checks the cost of a new op and of a new dtype: docs/architecture.md lists all hand-written files that name an existing
one, and there are no more such files than it promises.

change_costs.py ROOT
"""
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

FOLDERS = ["core", "sdk", "backends", "plugins", "python", "tools"]
# Files that programs write, and copies of a table in another language.
GENERATED = ["sdk/data/ops.json", "sdk/rust/*", "docs/*"]
# Elementwise ops of tier 1 with one operand, which every backend implements, and the most places that may name an op.
OPS, MOST_PLACES = ["ERF", "SILU"], 9
# Additional files, which decide about ops as a group.
GROUPS = ["sdk/include/plugrad/sdk/rows.hpp", "sdk/ops.md"]
# The dtype i16 represents all dtypes. File formats have types of their own, and tests name the dtypes that they test.
FORMATS = ["core/io/idx.cpp", "core/io/ggml_types.cpp", "core/io/onnx/element_types.cpp", "python/tests/*"]
MOST_FILES = 3


def rows(page, title):
    """The first column of the table below a title."""
    section = page.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)


def patterns(row):
    """The files of a row: `core/ops/` means all files in that folder."""
    folder, found = "", []
    for name in re.findall(r"`([^`]+)`", row):
        name = name if "/" in name else f"{folder}/{name}"
        folder = name.rsplit("/", 1)[0]
        found.append(name + "*" if name.endswith("/") else name)
    return found


def naming(root, expression):
    """The hand-written files in which the expression occurs."""
    listed = subprocess.run(["grep", "-rlE", expression, *FOLDERS], cwd=root, capture_output=True, text=True).stdout.split()
    return sorted(file for file in listed if not any(fnmatchcase(file, each) for each in GENERATED))


def check(root):
    """Returns one line for each fault."""
    page, wrong = (root / "docs/architecture.md").read_text(), []
    places = rows(page, "Adding an op")
    if len(places) > MOST_PLACES:
        wrong.append(f"docs/architecture.md lists {len(places)} places of an elementwise op, at most {MOST_PLACES}")
    known = [each for row in places for each in patterns(row)] + GROUPS
    for op in OPS:
        for file in naming(root, rf"\b(PLUGRAD_OP_|OP_)?{op}\b"):
            if not any(fnmatchcase(file, each) for each in known):
                wrong.append(f"{file} names the op {op}: docs/architecture.md does not list that place of a new op")
    files = naming(root, r'DType::i16\b|"i16"|"int16"|\bint16 as\b|_plugrad\.i16\b|PLUGRAD_I16\b')
    files = [file for file in files if not any(fnmatchcase(file, each) for each in FORMATS)]
    if len(files) > MOST_FILES:
        wrong.append(f"a dtype stands in {len(files)} files, at most {MOST_FILES}: {', '.join(files)}")
    known = [each for row in rows(page, "Adding a dtype") for each in patterns(row)]
    wrong += [f"{file} names the dtype i16, and docs/architecture.md does not list it" for file in files
              if file not in known]
    return wrong, len(places), files


def main():
    wrong, places, files = check(Path(sys.argv[1]))
    print(f"an elementwise op: {places} places; a dtype: {len(files)} files ({', '.join(files)})")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
