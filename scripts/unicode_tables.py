#!/usr/bin/env python3
"""Writes core/io/unicode_classes.inl and core/io/unicode_decompositions.inl from Python's unicodedata. With --check it
writes nothing, and fails if the files differ and have the same version of Unicode.

unicode_tables.py ROOT [--check]
"""
import sys
import unicodedata
from pathlib import Path

COLUMNS = 125
EVERY = [chr(i) for i in range(sys.maxunicode + 1)]
CATEGORY = [unicodedata.category(c) for c in EVERY]
HANGUL = range(0xac00, 0xd7a4)  # decomposed by a formula


def ranges(accepts):
    """The first and last code points of each run whose category `accepts`."""
    found = []
    for i, category in enumerate(CATEGORY):
        if accepts(category):
            if found and found[-1][1] == i - 1:
                found[-1][1] = i
            else:
                found.append([i, i])
    return found


def lower_runs():
    """(first, last, step, difference) of runs of code points whose lower-case letter is one code point, at `difference`."""
    runs = []
    for i, c in enumerate(EVERY):
        lower = c.lower()
        if lower == c or len(lower) != 1:
            continue
        difference = ord(lower) - i
        if runs and runs[-1][3] == difference:
            first, last, step, _ = runs[-1]
            if i - last in (1, 2) and (first == last or i - last == step):
                runs[-1] = (first, i, i - last, difference)
                continue
        runs.append((i, i, 1, difference))
    return runs


def decompositions():
    """(code point, its canonical decomposition without nonspacing marks) for each code point that has a decomposition."""
    found = []
    for i, c in enumerate(EVERY):
        whole = unicodedata.normalize("NFD", c)
        if whole != c and i not in HANGUL:
            found.append((i, [ord(each) for each in whole if CATEGORY[ord(each)] != "Mn"]))
    return found


def table(declaration, rows):
    """A table in C++, with as many rows per line as fit."""
    lines, line = [f"constexpr {declaration}[] = {{"], "   "
    for row in rows:
        text = " {" + ", ".join(f"0x{n:x}" if n >= 0 else str(n) for n in row) + "},"
        if len(line) + len(text) > COLUMNS:
            lines.append(line)
            line = "   "
        line += text
    return "\n".join([*lines, line, "};", ""])


def head(what):
    return (f"// {what}\n// scripts/unicode_tables.py made this file from Unicode {unicodedata.unidata_version}. "
            "Do not edit it.\n\n")


def files():
    """The text of each file by its name."""
    classes = {"kLetters": lambda c: c[0] == "L", "kNumbers": lambda c: c[0] == "N", "kMarks": lambda c: c == "Mn",
               "kPunctuation": lambda c: c[0] == "P", "kControls": lambda c: c in ("Cc", "Cf", "Co")}
    tables = [table(f"Range {name}", ranges(accepts)) for name, accepts in classes.items()]
    found = decompositions()
    single = table("Single kSingle", [(i, whole[0]) for i, whole in found if len(whole) == 1])
    several = table("Several kSeveral", [(i, *(whole + [0, 0, 0])[:3]) for i, whole in found if len(whole) != 1])
    first = head("The code points of some general categories, as ranges, and the differences to their lower-case letters.")
    second = head("Canonical decompositions without nonspacing marks.")
    between = "\n// Those of no, two or three code points; 0 ends the shorter ones.\n"
    return {"unicode_classes.inl": first + "\n".join([*tables, table("LowerRun kLower", lower_runs())]),
            "unicode_decompositions.inl": second + single + between + several}


def main(root, check):
    for name, text in files().items():
        path = Path(root) / "core/io" / name
        if not check:
            path.write_text(text)
        elif f"Unicode {unicodedata.unidata_version}." not in path.read_text():
            print(f"{path} is not compared: this Python has Unicode {unicodedata.unidata_version}")
        elif path.read_text() != text:
            sys.exit(f"{path} is not what scripts/unicode_tables.py writes: run it")


if __name__ == "__main__":
    arguments = [each for each in sys.argv[1:] if each != "--check"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    main(arguments[0], "--check" in sys.argv)
