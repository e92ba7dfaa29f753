"""Checks the costs of compiling and testing by counts instead of times: lines of headers and of the tools' sources, sizes
of objects, and the number of test processes in quick.

compile_costs.py ROOT BUILD   with the compiler in CXX and ctest in CTEST

The commit message of a change that needs a higher bound explains why the change is worth the additional time of every build.
"""
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Lines that are not empty after preprocessing, in units that include only this header. Nearly all lines come from the
# standard library: a header that starts to include <regex>, <iostream> or JSON exceeds its bound.
HEADER_LINES = {
    "plugrad/plugrad.hpp": 67_000,
    "plugrad/ops/elementwise.hpp": 30_000,
    "plugrad/sdk/backend.hpp": 50_000,
    "core/ops/run.hpp": 46_000,
    "core/autograd/rule.hpp": 46_000,
    "core/runtime/dispatch/dispatch.hpp": 45_000,
    "sdk/conformance/session.hpp": 75_000,
    "tools/train/trainer.hpp": 70_000,
    "tools/plugrad/commands.hpp": 30_000,
    "tools/plugrad/json.hpp": 45_000,
    "tools/plugrad/options.hpp": 45_000,
}
# The same for each source of the tools, except for the two sources that alone include JSON and Program_options.
TOOL_LINES = 70_000
WRAPPERS = {"tools/plugrad/json.cpp", "tools/plugrad/options.cpp"}
OBJECT_BYTES = 3_000_000
QUICK_PROCESSES = 1_518
INCLUDES = (".", "core/include", "sdk/include")


def count_lines(preprocessed):
    """The lines that are neither empty nor a marker of the preprocessor."""
    return sum(1 for line in preprocessed.splitlines() if line.strip() and not line.startswith("#"))


def lines_with(root, name):
    """The lines of a unit that includes only this file."""
    folders = [f"-I{root / each}" for each in INCLUDES]
    command = [os.environ.get("CXX", "c++"), "-std=c++20", *folders, "-E", "-x", "c++", "-"]
    ran = subprocess.run(command, input=f"#include <{name}>\n", capture_output=True, text=True, check=True)
    return count_lines(ran.stdout)


def tool_sources(root):
    names = (path.relative_to(root).as_posix() for path in sorted((root / "tools").rglob("*.cpp")))
    return [name for name in names if name not in WRAPPERS]


def objects(build):
    """The sizes of the product's objects by their names."""
    folders = ("core", "backends", "plugins", "sdk/conformance", "sdk/loops", "tools", "process")
    return {str(path.relative_to(build)): path.stat().st_size
            for folder in folders for path in (build / folder).rglob("*.o")}


def quick_processes(build):
    command = [os.environ.get("CTEST", "ctest"), "--test-dir", str(build), "--show-only", "--label-regex", "^quick$"]
    last = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1]
    return int(last.removeprefix("Total Tests: "))


def faults(counts, bounds, unit):
    """One line for each count above its bound."""
    return [f"{name}: {counts[name]} {unit}, at most {bounds[name]}" for name in counts if counts[name] > bounds[name]]


def main():
    root, build = Path(sys.argv[1]), Path(sys.argv[2])
    bounds = HEADER_LINES | dict.fromkeys(tool_sources(root), TOOL_LINES)
    with ThreadPoolExecutor() as pool:
        lines = dict(zip(bounds, pool.map(lambda name: lines_with(root, name), bounds)))
    found = faults(lines, bounds, "preprocessed lines")
    sizes = objects(build)
    found += faults(sizes, dict.fromkeys(sizes, OBJECT_BYTES), "bytes")
    processes = {"quick": quick_processes(build)}
    found += faults(processes, {"quick": QUICK_PROCESSES}, "processes")
    for name, count in lines.items():
        print(f"{count:7} lines  {name}")
    for name, size in sorted(sizes.items(), key=lambda each: -each[1])[:8]:
        print(f"{size:9} bytes  {name}")
    print(f"{processes['quick']} processes in quick")
    if not sizes:
        found.append(f"{build} has no objects: build it first")
    for fault in found:
        print("too costly:", fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
