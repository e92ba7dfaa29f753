"""Times the same rows in several libraries. Each library has a process of its own; the processes take turns, row by row."""
import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

# Processor time stops while other processes run, so it suits a library that uses one thread.
PROCESSOR, WALL = time.process_time, time.perf_counter
# glibc keeps large allocations, which saves PyTorch a page fault per page.
KEPT = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "4294967296", "MALLOC_TOP_PAD_": "268435456"}
# Seconds before a library's turn, in which the threads of the previous library stop spinning.
REST = 0.1
# These variables make a BLAS slower if they name another processor.
REMOVED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def seconds(run, clock, budget=0.05):
    """Seconds per call, in a loop that fills the budget. Subtracts the time of the loop itself."""
    calls = 1
    while True:
        taken = timed(run, calls, clock)
        if taken >= budget / 4 or calls > 10**7:
            break
        calls *= 4
    calls = max(1, int(calls * budget / max(taken, 1e-9)))
    taken = timed(run, calls, clock)
    return max(taken - timed(lambda: None, calls, clock), 1e-12) / calls if calls > 100 else taken / calls


def timed(run, calls, clock):
    start = clock()
    for _ in range(calls):
        run()
    return clock() - start


def environment_for(threads):
    return {**{name: value for name, value in os.environ.items() if name not in REMOVED}, **KEPT,
            "OMP_NUM_THREADS": str(threads), "PLUGRAD_CPU_OPTIONS": f"threads={threads}"}


class Library:
    """One library, in its own interpreter, which runs `script --serve NAME`. It has no rows if the interpreter is missing.

    Its process may use as many processors as threads. JAX would otherwise run independent products on several processors,
    although its options allow one thread."""

    def __init__(self, name, python, script, threads=1):
        self.name, self.rows = name, []
        if not Path(python).exists():
            return
        # The last processors, because the kernel's own work prefers the first ones.
        processors = sorted(os.sched_getaffinity(0))[-threads:]
        self.child = subprocess.Popen([python, script, "--serve", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True, env=environment_for(threads),
                                      preexec_fn=lambda: os.sched_setaffinity(0, processors))
        first = self.child.stdout.readline()
        self.version, self.rows = json.loads(first) if first else ("", [])

    def measure(self, row):
        time.sleep(REST)
        self.child.stdin.write(row + "\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())


def serve(make_rows, name, clock):
    """Prints the names of the rows, then a time for each row named on standard input; nothing if the library is missing."""
    from importlib import metadata
    try:
        rows = make_rows()
    except ImportError:
        return
    packages = {"PyTorch": "torch", "torch.compile": "torch", "llama.cpp": "llama-cpp-python"}
    package = name.split(", ")[0]  # "plugrad, eager"
    version = metadata.version(packages.get(package, package.lower()))
    print(json.dumps([f"{name} {version}", list(rows)]), flush=True)
    for line in sys.stdin:
        print(json.dumps(seconds(rows[line.strip()], clock)), flush=True)


def text_of(times):
    middle = statistics.median(times)
    unit, factor = (("ns", 1e9) if middle < 1e-5 else ("us", 1e6) if middle < 1e-2 else ("ms", 1e3) if middle < 2
                    else ("s", 1))
    return f"{middle * factor:.3g} {unit} ({min(times) * factor:.3g} to {max(times) * factor:.3g})"


def measured(row, libraries, rounds):
    """The times of a row in each library that has the row, measured in alternating rounds."""
    times = {each.name: [] for each in libraries if row in each.rows}
    for _ in range(rounds):
        for each in libraries:
            if row in each.rows:
                times[each.name].append(each.measure(row))
    return times


def table(libraries, rounds, only=""):
    """Yields the lines of a Markdown table of the first library's rows. Ratio: another library's median over the first's."""
    ours, others = libraries[0], [each for each in libraries[1:] if each.rows]
    titles = [ours.version, *(f"{each.version} | times faster" for each in others)]
    yield "| row | " + " | ".join(titles) + " |"
    yield "|---" * (2 + 2 * len(others)) + "|"
    for row in ours.rows:
        if not re.search(only, row):
            continue
        times = measured(row, [ours, *others], rounds)
        cells = [text_of(times[ours.name])]
        for each in others:
            known = times.get(each.name)
            ratio = f"{statistics.median(known) / statistics.median(times[ours.name]):.2f}" if known else ""
            cells += [text_of(known) if known else "", ratio]
        yield f"| {row} | " + " | ".join(cells) + " |"


def add_options(parser):
    parser.add_argument("--peers", default="build-peers/venv")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out")
    parser.add_argument("--serve", help="used by the program itself")


def processor_name():
    return next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
                platform.machine())


def report(libraries, options, how, only=""):
    """Prints the table line by line, and writes it to options.out."""
    if not libraries[0].rows:
        sys.exit(f"{libraries[0].name} is missing: {sys.executable} cannot import it, or cannot load its library")
    lines = [f"{processor_name()}, Python {platform.python_version()}, {how}, load {os.getloadavg()[0]:.1f} at the start; "
             f"medians of {options.rounds} rounds in turns (least to most)", ""]
    print("\n".join(lines))
    for line in table(libraries, options.rounds, only):
        print(line, flush=True)
        lines.append(line)
    if options.out:
        Path(options.out).parent.mkdir(parents=True, exist_ok=True)
        Path(options.out).write_text("\n".join(lines) + "\n")


def beside_torch(description, script, plugrad_rows, torch_rows, **more_rows):
    """The program of a script that compares plugrad with PyTorch, and with other peers by name. The functions return rows;
    each function runs in its library's process."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", metavar="REGEX")
    add_options(parser)
    options = parser.parse_args()
    makers = {"plugrad": plugrad_rows, "PyTorch": torch_rows, **more_rows}
    if options.serve:
        return serve(makers[options.serve], options.serve, WALL)
    peer = Path(options.peers) / "bin/python"
    libraries = [Library(name, sys.executable if name.startswith("plugrad") else peer, script, options.threads)
                 for name in makers]
    report(libraries, options, f"{options.threads} threads, elapsed time", options.only)
