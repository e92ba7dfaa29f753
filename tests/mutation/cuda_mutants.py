"""Plants bugs in the CUDA backend as the emulator runs it, and counts those that plugrad-conform finds.

cuda_mutants.py SOURCE BUILD [--count N] [--seed N] [--jobs N] [--report FILE]

BUILD is a full build: the script uses its compiler commands and objects. mutants.py makes the bugs, in the files of kernels.
The ops that the file names are tried first, in f32, and the cases of failures; if the bug survives, all cases run. Changes
that cost only time, such as another number of blocks, are not bugs; ACCEPTED lists them.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from mutants import House, arguments, bugs_of, campaign, conform

# Survivors that are not bugs: a part of the file's name and of the line's text, and the reason.
ACCEPTED = [
    ("fusion.cu: append(grid.base, operands * sizeof grid.base[0])", "the size is the same"),
    ("scans.cu: const uint64_t most", "it only says how many blocks share a line"),
    ("->  int64_t low = count > second_count ? count - second_count : 0, high = count <= first_count", "equal values"),
    ("functions.cu: inline constexpr bool kOneByOne", "it only says how many elements a thread takes at a time"),
    ("list.cu: if (cudaGraphExecDestroy", "it forgets an error that no later call looks at"),
    ("arithmetic.cu: return !is_approximated", "a plugin may lack ops: plugrad-conform lists them and grades it lower"),
    ("architecture.cu: int blocks = 0", "the query overwrites it"),
    ("matmul.cu: return {false, false, 0}", "nobody reads it of a matrix that is not plain"),
    ("row_norms.cu: for (uint64_t group = blockIdx.x; group <", "a group beyond the last has no lines"),
]
# The ops that files without opcodes compute.
FIRST = {"product.cu": "MATMUL,MATMUL_ADD", "reduction_plan.cu": "SUM,MAX,ARGMAX", "convolution_plan.cu": "CONVOLUTION",
         "architecture.cu": "ADD", "copies.cu": "COPY,CAST,FILL"}


class Emulator:
    """The objects of the sound plugin."""

    def __init__(self, source, build):
        self.source, self.build = source, build
        commands = json.loads((build / "compile_commands.json").read_text())
        for each in commands:
            words = shlex.split(each["command"])
            each["output"] = words[words.index("-o") + 1]
        mine = [each for each in commands if "plugrad_backend_cuda_emu.dir" in each["output"]]
        self.commands = {Path(each["file"]).name: each for each in mine}
        self.plugin = next(build / each["output"] for each in commands if "plugrad-backend-cuda-emu.dir" in each["output"])

    def plant(self, bug, folder):
        """Returns the plugin with the bug; None if it does not compile or computes the same."""
        name = Path(bug.file).name
        entry = self.commands[name]
        lines = (self.source / bug.file).read_text().splitlines()
        lines[bug.line] = bug.after
        changed, made = folder / name, folder / "changed.o"
        changed.write_text("\n".join(lines) + "\n")
        words = [word for word in shlex.split(entry["command"]) if word != "-Werror"]
        words = [str(changed) if word == entry["file"] else str(made) if word == entry["output"] else word for word in words]
        if subprocess.run(words + ["-w"], cwd=entry["directory"], capture_output=True, timeout=600).returncode:
            return None
        sound = folder / "sound.o"
        sound.write_bytes((self.build / entry["output"]).read_bytes())
        if House.code(made) == House.code(sound):
            return None
        return self.link(folder, [str(made)], entry)

    def link(self, folder, changed=(), instead_of=None):
        """Returns the plugin, with changed objects instead of the object of one command."""
        objects = [str(self.build / each["output"]) for each in self.commands.values() if each is not instead_of]
        plugin = folder / "libplugrad-backend-cuda-emu.so"
        compiler = shlex.split(next(iter(self.commands.values()))["command"])[0]
        subprocess.run([compiler, "-shared", str(self.plugin), *changed, *objects,
                        str(self.build / "tests/simt/libplugrad_simt.a"), "-ldl",
                        f"-Wl,--version-script={self.source}/sdk/plugin.map", "-o", str(plugin)],
                       check=True, capture_output=True)
        return plugin


def require_sound(emulator):
    """Ends the program if plugrad-conform finds anything in the plugin without a bug."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--skip", emulator.source / "tests/cuda/emulator.skip", "--only", "ADD,MATMUL,contract.,memory."]
        if found := conform(emulator.build / "bin/plugrad-conform", emulator.link(Path(folder)), *options):
            sys.exit(f"cuda_mutants.py: the plugin without a bug: {found}")


def tried(emulator, bug):
    """Returns (whether the change is a bug, the line that reports it, or None)."""
    with tempfile.TemporaryDirectory() as folder:
        plugin = emulator.plant(bug, Path(folder))
        if not plugin:
            return False, None
        text = (emulator.source / bug.file).read_text()
        ops = FIRST.get(Path(bug.file).name) or ",".join(sorted(set(re.findall(r"PLUGRAD_OP_([A-Z_0-9]+)", text))))
        program, skip = emulator.build / "bin/plugrad-conform", ["--skip", emulator.source / "tests/cuda/emulator.skip"]
        first = ["--only", f"{ops},failure.", "--dtype", "f32"] if ops else ["--dtype", "f32"]
        return True, conform(program, plugin, *skip, *first) or conform(program, plugin, *skip)


def chosen(source, seed):
    """Yields bugs in random order, with the same share from each file."""
    turns = []
    for path in sorted((source / "backends/cuda").glob("*.cu")):
        bugs = list(bugs_of("cuda-emu", str(path.relative_to(source)), path.read_text()))
        random.Random(seed).shuffle(bugs)
        turns.append(bugs)
    random.Random(seed).shuffle(turns)
    while any(turns):
        for bugs in turns:
            if bugs:
                yield bugs.pop()


def main():
    options = arguments(__doc__, 40, "build").parse_args()
    emulator = Emulator(options.source, options.build)
    require_sound(emulator)
    sys.exit(not campaign(options, chosen(options.source, options.seed), lambda bug: tried(emulator, bug), ACCEPTED))


if __name__ == "__main__":
    main()
