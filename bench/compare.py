#!/usr/bin/env python3
"""Runs the benchmarks of plugrad and, if it was built, of libtorch, in turns, and prints a table of medians and ratios.

compare.py [--build build] [--before OTHER-BUILD] [--threads 1] [--rounds 5] [--rows REGEX] [--out bench/results/NAME.md]

If other users of a machine slow it down for some time, the fastest rounds tell more than medians, given enough rounds.
"""
import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# glibc then keeps large allocations instead of returning them to the system, which saves page faults.
KEEP_PAGES = "glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=68719476736"


class Contestant:
    """A program, and the prefix of its rows' names."""

    def __init__(self, title, program, prefix, **environment):
        self.title, self.program, self.prefix, self.environment = title, program, prefix, environment
        self.times = {}  # row -> nanoseconds, one number per round

    def run(self, arguments, threads):
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads),
                       "PLUGRAD_CPU_OPTIONS": f"threads={threads}", **self.environment}
        done = subprocess.run([self.program, *arguments], env=environment, stdout=subprocess.PIPE, check=True, text=True)
        return done.stdout

    def rows(self, threads):
        listed = self.run(["--benchmark_list_tests"], threads).split()
        return [name.removeprefix(self.prefix + "/").removesuffix("/real_time")
                for name in listed if name.startswith(self.prefix + "/")]

    def measure(self, rows, seconds, threads):
        """Measures one round of these rows; skips rows that the program lacks."""
        names = "|".join(re.escape(row) for row in rows)
        output = self.run([f"--benchmark_filter=^{self.prefix}/({names})/real_time$", "--benchmark_format=json",
                           f"--benchmark_min_time={seconds}", f"--benchmark_min_warmup_time={seconds / 2}"], threads)
        if not output.strip():
            return
        for entry in json.loads(output)["benchmarks"]:
            row = entry["name"].removeprefix(self.prefix + "/").removesuffix("/real_time")
            unit = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[entry["time_unit"]]
            self.times.setdefault(row, []).append(entry["real_time"] * unit)

    def median(self, row):
        return statistics.median(self.times[row]) if row in self.times else None

    def fastest(self, row):
        return min(self.times[row]) if row in self.times else None

    def spread(self, row):
        """The range of the rounds, relative to the median."""
        return (max(self.times[row]) - min(self.times[row])) / self.median(row)


def contestants(build, before):
    ours = build / "bench/bench_ops"
    if not ours.exists():
        sys.exit(f"compare.py: {ours} is missing: build with Google Benchmark installed (scripts/install.sh bench)")
    found = [Contestant("plugrad cpu", ours, "cpu"), Contestant("plugrad reference", ours, "reference")][:1 if before else 2]
    if before:
        found.append(Contestant("plugrad cpu, before", before / "bench/bench_ops", "cpu"))
        if not found[-1].program.exists() or not found[-1].rows(1):
            sys.exit(f"compare.py: {found[-1].program} is missing or finds no plugin cpu: build all of {before}")
    torch = build / "bench/bench_torch"
    if torch.exists():
        found += [Contestant("libtorch", torch, "torch"),
                  Contestant("libtorch, pages kept", torch, "torch", GLIBC_TUNABLES=KEEP_PAGES)]
    else:
        print(f"left out: libtorch, {torch} is missing (bench/README.md)", file=sys.stderr)
    return found


def human(nanoseconds):
    if nanoseconds is None:
        return "-"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def machine():
    fields = {}
    for line in subprocess.run(["lscpu"], capture_output=True, text=True,
                               env={**os.environ, "LC_ALL": "C"}).stdout.splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    flags = [name for name in ("avx2", "avx512f") if name in fields.get("Flags", "").split()]
    caches = ", ".join(f"{name} {fields[name]}" for name in ("L2 cache", "L3 cache", "L2", "L3") if name in fields)
    return f"{fields.get('Model name', platform.machine())}, {fields.get('CPU(s)', '?')} CPUs, {caches}, {' '.join(flags)}"


def commit():
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def table(found, rows, options):
    ours = found[0]
    peers = [peer for peer in found if peer.title.startswith("libtorch")]
    before = next((other for other in found if other.title.endswith("before")), None)
    ratio = ["libtorch (faster one) / plugrad cpu"] if peers else []
    ratio += ["before / plugrad cpu", "the same, fastest rounds"] if before else []
    header = ["row", *(contestant.title for contestant in found), *ratio, "spread of plugrad cpu"]
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for row in rows:
        cells = [row, *(human(contestant.median(row)) for contestant in found)]
        if peers:
            best = min((peer.median(row) for peer in peers if peer.median(row)), default=None)
            cells.append(f"{best / ours.median(row):.2f}" if best and ours.median(row) else "-")
        if before:
            cells += [f"{of(before) / of(ours):.2f}" if of(before) else "-"
                      for of in (lambda each: each.median(row), lambda each: each.fastest(row))]
        cells.append(f"{100 * ours.spread(row):.0f}%" if row in ours.times else "-")
        lines.append("| " + " | ".join(cells) + " |")
    facts = [f"- {machine()}", f"- plugrad {commit()}, {date.today()}, {options.threads} thread(s), "
             f"medians of {options.rounds} rounds in turns, load before {os.getloadavg()[0]:.1f}"]
    return "\n".join([*facts, "", *lines, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the build directory")
    parser.add_argument("--before", type=Path, help="a build directory of another commit, to compare with")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.05, help="how long a row runs at least in each round")
    parser.add_argument("--rows", default="", help="a regular expression that selects rows")
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    found = contestants(options.build, options.before)
    rows = [row for row in found[0].rows(options.threads) if re.search(options.rows, row)]
    groups = {}  # the rows that one start of a program measures
    for row in rows:
        groups.setdefault(row.rpartition("/")[0], []).append(row)
    if not rows:
        sys.exit(f"compare.py: no row of plugrad on the device cpu matches '{options.rows}'")
    for number in range(options.rounds):
        for group in groups.values():
            # The order rotates with the rounds, so that no program always runs after the same program.
            for contestant in found[number % len(found):] + found[:number % len(found)]:
                contestant.measure(group, options.seconds, options.threads)
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    text = table(found, rows, options)
    print(text)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
