"""Registers and spills of the CUDA kernels, as ptxas reports them: a spill in a memory-bound kernel is a failure.

registers.py NVCC ROOT ARCHITECTURE SOURCE...
A memory-bound kernel reads and writes each element once: registers spilled to memory would add traffic.
"""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MEMORY_BOUND = re.compile(
    r"(map|reduce|transpose|iota|gather|scatter|scatter_lines|scatter_blocks|random|softmax|softmax_backward|"
    r"cross_entropy|cross_entropy_backward|row_norm|row_norm_backward|channel|delta|scan|scan_sums|sum_segments|join|"
    r"merge)_kernel")
KERNEL = re.compile(r"\d+([a-z_]*_kernel)")
FLAGS = ["-std=c++20", "-O3", "--fmad=false", "--resource-usage"]


class Usage:
    """The resources that one kernel uses."""

    def __init__(self, name):
        self.name, self.registers, self.frame, self.spills = name, None, None, None


def parse(text):
    """The usages in the output of ptxas -v, in order."""
    found, current = [], None
    for line in text.splitlines():
        if match := re.search(r"Compiling entry function '(\S+)'", line):
            current = Usage(match.group(1))
            found.append(current)
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            if current and current.spills is None:
                current.frame, current.spills = int(match.group(1)), int(match.group(2)) + int(match.group(3))
        elif match := re.search(r"Used (\d+) registers", line):
            if current and current.registers is None:
                current.registers = int(match.group(1))
    return found


def compile_one(nvcc, root, architecture, source, folder):
    command = [nvcc, *FLAGS, f"-gencode=arch=compute_{architecture},code=sm_{architecture}", f"-I{root}",
               f"-I{root}/sdk/include", f"-I{root}/backends/cuda/include", "-c", source, "-o", f"{folder}/kernels.o"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{source} does not compile:\n{done.stdout}{done.stderr}")
    return parse(done.stdout + done.stderr)


def short(name):
    match = KERNEL.search(name)
    return match.group(1) if match else name


def faults_of(usages):
    unknown = [f"{short(u.name)}: ptxas does not report it" for u in usages if u.registers is None or u.spills is None]
    return unknown + [f"{u.name}: {u.spills} bytes of spills" for u in usages if u.spills and MEMORY_BOUND.search(u.name)]


def main(arguments):
    if len(arguments) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    nvcc, root, architecture, *sources = arguments
    if not shutil.which(nvcc):
        sys.exit(f"no {nvcc}")
    faults, bound = [], 0
    for source in sources:
        with tempfile.TemporaryDirectory() as folder:
            usages = compile_one(nvcc, root, architecture, source, folder)
        for name in sorted({short(u.name) for u in usages}):
            some = [u for u in usages if short(u.name) == name]
            most = max(u.registers or 0 for u in some)
            stack, spills = max(u.frame or 0 for u in some), sum(u.spills or 0 for u in some)
            print(f"{Path(source).name}: {len(some)} of {name}: up to {most} registers, {stack} bytes of stack, "
                  f"{spills} of spills")
        faults += faults_of(usages)
        bound += sum(bool(MEMORY_BOUND.search(u.name)) for u in usages)
    for fault in faults:
        print(fault)
    print(f"sm_{architecture}: {bound} memory-bound kernels, {len(faults)} faults")
    return 1 if faults or not bound else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
