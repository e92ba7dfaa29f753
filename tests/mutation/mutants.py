"""Plants bugs in backends and counts those that plugrad-conform finds.

mutants.py SOURCE CONFORM [--count N] [--seed N] [--jobs N] [--dtype DTYPES] [--report FILE]

A bug is one small change of one line: another comparison, operator, constant or bound, or a statement that is left out. A
changed file that does not compile, or compiles to the same code, is not a bug. Each bug is compiled into `reference`, `sim`
or `c11`. A bug counts as found if plugrad-conform prints a FAIL line or refuses the file. The ops that the file contains run
first, in f32, then in all dtypes; if the bug survives, all cases run. The report lists the survivors, and ACCEPTED says why
some survivors are not bugs.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CC, CXX = os.environ.get("CC", "cc"), os.environ.get("CXX", "c++")
FLAGS = ["-std=c++20", "-O1", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-w"]
# The other files of sim check the host or plant faults for its tests, which the contract does not ask of a plugin.
SIM_CHANGED = ["device", "native", "list", "stream", "transfer"]
LOOPS = "sdk/include/plugrad/sdk/loops"
NORMS = "LAYER_NORM,LAYER_NORM_BACKWARD,RMS_NORM,RMS_NORM_BACKWARD,BATCH_NORM,BATCH_NORM_BACKWARD"
ROWS = "LOG_SOFTMAX,LOG_SOFTMAX_BACKWARD,CROSS_ENTROPY,CROSS_ENTROPY_BACKWARD,SOFTMAX,SOFTMAX_BACKWARD,ARGSORT,TOPK,CUMSUM"
WINDOWS = ("CONVOLUTION,CONVOLUTION_BIAS,CONVOLUTION_INPUT_GRAD,CONVOLUTION_WEIGHT_GRAD,MAX_POOL,MAX_POOL_BACKWARD")
# For each file the cases that are tried first: the ops that it computes.
FIRST = {
    "attention.cpp": "ATTENTION,ATTENTION_BACKWARD", "normalization.cpp": NORMS, "rowwise.cpp": ROWS,
    "windows.cpp": WINDOWS, "update.cpp": "DESCENT_STEP,SGD_STEP,ADAM_STEP", "fusion.cpp": "fusion.",
    "contraction.hpp": "MATMUL,MATMUL_ADD",
    "indexing.hpp": "GATHER,SCATTER_ADD,SCATTER_SUM,failure.", "random.hpp": "UNIFORM,NORMAL",
    "reduction.hpp": "SUM,MAX,MIN,ARGMAX", "accumulator.hpp": "SUM,MATMUL,SCATTER_SUM",
    "elements.hpp": "COPY,ADD,WHERE,GATHER", "elementwise.hpp": "FILL,COPY,CAST,IOTA,WHERE,ADD,EXP",
    "ordering.hpp": "MAX,ARGMAX",
}
SIM_FIRST = "contract.,memory.,stream.,native.,list.,failure.,thread."
# Survivors that are not bugs: a part of the file's name and of the line's text, and the reason.
ACCEPTED = [
    ("attention.cpp: return {first,", "nothing moves along an axis of one element"),
    ("attention.cpp: const double shift", "without a score all weights are 0, and so is their sum, whatever the shift"),
    ("functions.hpp: return (x < 0 ? x * e : x)", "at 0 both branches are 0 of its sign"),
    ("fusion.cpp: bool is_complete()", "it then declines every fusion, as a plugin may"),
    ("fusion.cpp: uint64_t most = 0;", "a byte of workspace more"),
    ("fusion.cpp: free.emplace", "memory is used once, so more of it"),
    ("fusion.cpp: value.count = 1;", "results lie twice as far apart, in twice the memory"),
    ("fusion.cpp: value.layout = 0;", "a dense view may be called strided"),
    ("fusion.cpp: plugrad_signature signature", "the plain copy has no flags to look at"),
    ("fusion.cpp: const plugrad_op op", "the plain copy looks at neither number of operands nor workspace"),
    ("rowwise.cpp: for (int64_t i = 1;", "the first element is not larger than itself"),
    ("update.cpp: call.out(0),", "all operands have one shape"),
    ("windows.cpp: int64_t size[3]", "the first number of each list is overwritten: there is at least one spatial axis"),
    ("functions.hpp: return (x < 0", "both are 1 where x is 0"),
    ("functions.hpp: const T smaller", "of two zeros, either is the smaller one"),
    ("functions.hpp: const T bounded", "the bound itself is both"),
    ("functions.hpp: return (x < 0", "both are 1 where x is 0"),
    ("reduction.hpp: for (int axis", "no walk looks at axes beyond the rank"),
    ("static constexpr bool makes(const OpInfo&) { return true; }", "it then declines these ops, as a plugin may"),
    ("while (operands < MAX_WALKED && row->dtypes", "it then declines nearly every op, as a plugin may"),
    ("walk_begin(&walk, op->views[0], op);  ->  walk_begin(&walk, op->views[1]", "both views have one shape"),
    ("c11.c: slice->operands = 1;", "the second operand does not move, and nobody reads it"),
    ("c11.c: if (wanted->outputs", "it then declines every op, as a plugin may"),
    ("c11.c: plugrad_device_info known", "host memory may belong to a node"),
    ("c11.c: Device* device = calloc", "memory for a second device is no harm"),
    ("Number number = {.i64 = 0};", "the values that follow overwrite what any dtype reads"),
    ("s.demand_number(copy.number);", "it checks the host"),
    ("device.cpp: constexpr uint64_t kPinnedBytes", "a device may have more memory"),
    ("device.cpp: region.guard(*block);", "it checks the host"),
    ("device.cpp: check(kernel, op, ranges);", "it checks the host"),
    ("device.cpp: for (int i", "it checks the host"),
    ("device.cpp: job.racing", "it checks the host"),
    ("device.cpp: return true;", "it checks the host"),
    ("list.cpp: std::equal", "it checks the host"),
    ("stream.cpp: std::to_string(accepted_", "a number in an error about the host"),
    ("stream.cpp: job.faults = 0;", "what runs or copies sets it, and waits look at none"),
    ("stream.cpp: std::strncpy", "a message that is too long loses a byte more"),
    ("std::memset(data<char>(view), kPoison,", "it checks the host: results are poisoned before a kernel runs"),
    ("for (int i = 0; i < ROWS; ++i)  ->  for (int i = 1;", "it then declines one op, as a plugin may"),
    ("uint16_t layout = 0;  ->  uint16_t layout = 1;", "it checks the host"),
    ("if (from.region) racing |=", "it checks the host"),
    ("transfer.cpp: lock.unlock();", "a lock that is held longer"),
    ("value.shape[d] > 1 && value.strides[d] != value.count) value.layout |=", "a dense view may be called strided"),
    ("transfer.cpp: if (place.kind == PLUGRAD_HOST)", "nobody looks at the offset in plain host memory"),
    ("transfer.cpp: job.faults", "it plants faults for the host"),
    ("transfer.cpp: if (to.region) racing", "it checks the host"),
    ("transfer.cpp: if (status != PLUGRAD_OK) --counters_", "it counts for tests"),
    ("transfer.cpp: number = std::min", "it checks the host: to wait for the number itself is right as well"),
    ("transfer.cpp: if (o.finished()", "it waits for what is finished"),
]

SWAPS = [(r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "),
         (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " + "), (r" / ", " * "), (r" \+= ", " -= "), (r" -= ", " += "),
         (r" \*= ", " += "), (r" && ", " || "), (r" \|\| ", " && "), (r"\b0\b", "1"), (r"\b1\b", "0"), (r"\b1\b", "2"),
         (r"\bmin\b", "max"), (r"\bmax\b", "min"), (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
         (r"\bcontinue;", "break;"), (r"\breturn false;", "return true;"), (r"\breturn true;", "return false;"),
         (r"\(!", "("), (r" \? (\w+) : (\w+)", r" ? \2 : \1"), (r"\.lo\b", ".hi"), (r" % ", " / ")]
LEFT_OUT = re.compile(r"^\s*(//|#|using |static_assert|template|namespace|class |struct |(inline )?constexpr auto|PLUGRAD_)|"
                      r"BackendError|throw|\"|^\s*[})]")
STATEMENT = re.compile(r"^(\s*)[\w:.\[\]>*&()-]+(?: [+*/|-]?= .*|\(.*\));\s*$")

Bug = collections.namedtuple("Bug", "target file line before after")


def bugs_of(target, path, text):
    """All bugs that can be planted in a file."""
    for number, line in enumerate(text.splitlines()):
        code = line.split("//")[0]
        if not code.strip() or LEFT_OUT.search(code):
            continue
        for pattern, by in SWAPS:
            for found in re.finditer(pattern, code):
                after = code[:found.start()] + found.expand(by) + code[found.end():]
                yield Bug(target, path, number, line, after)
        if STATEMENT.match(code) and not re.match(r"\s*(const |auto |return|break|continue|[\w:<>]+ \w+ = )", code):
            yield Bug(target, path, number, line, re.sub(r"\S.*", ";", code))


class House:
    """The objects of the sound plugins."""

    def __init__(self, source, scratch):
        self.source, self.objects = source, scratch / "objects"
        self.objects.mkdir()
        self.reference = {file.stem: f"backends/reference/{file.name}"
                          for file in (source / "backends/reference").glob("*.cpp")}
        self.sim = {f"sim_{file.stem}": f"plugins/sim/{file.name}" for file in (source / "plugins/sim").glob("*.cpp")}
        self.units = {**self.reference, **self.sim, "reference_plugin": "plugins/reference/reference.cpp",
                      "c11_plugin": "plugins/c11/c11.c", "loops": "sdk/loops/loops.cpp"}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for done in [pool.submit(self.compile, name, source, self.objects) for name in self.units]:
                done.result()
        self.needs = {name: (self.objects / f"{name}.d").read_text() for name in self.units}

    def compile(self, name, root, folder):
        """Compiles a unit from a tree. Returns whether it compiles."""
        folders = ["", "sdk/include", "backends/reference/include", "plugins/sim/include"]
        includes = [f"-I{root}/{each}" for each in folders]
        compiler = [CXX, *FLAGS] if self.units[name].endswith("cpp") else [CC, "-std=c11", *FLAGS[1:]]
        return subprocess.run([*compiler, *includes, "-MMD", "-c", str(root / self.units[name]), "-o",
                               str(folder / f"{name}.o")], capture_output=True, timeout=300).returncode == 0

    def plant(self, bug, folder):
        """Returns the plugin with the bug; None if it does not compile or computes the same."""
        root = folder / "tree"
        for part in ("sdk/include", "sdk/loops", "backends/reference", "plugins/sim", "plugins/reference", "plugins/c11"):
            shutil.copytree(self.source / part, root / part)
        lines = (root / bug.file).read_text().splitlines()
        lines[bug.line] = bug.after
        (root / bug.file).write_text("\n".join(lines) + "\n")
        units = self.of(bug.target)
        changed = [name for name in units if f"/{bug.file}" in self.needs[name]]
        if not all(self.compile(name, root, folder) for name in changed):
            return None
        if all(self.code(folder / f"{name}.o") == self.code(self.objects / f"{name}.o") for name in changed):
            return None
        return self.link(bug.target, folder, changed)

    def link(self, target, folder, changed=()):
        """Returns the plugin, with the changed objects of the folder."""
        plugin = folder / f"libplugrad-backend-{target}.so"
        objects = [str((folder if name in changed else self.objects) / f"{name}.o") for name in self.of(target)]
        exports = f"-Wl,--version-script={self.source}/sdk/plugin.map"
        subprocess.run([CXX, "-shared", *objects, exports, "-pthread", "-o", str(plugin)], check=True, capture_output=True)
        return plugin

    def of(self, target):
        """The names of a plugin's units."""
        return {"c11": ["c11_plugin"], "reference": ["reference_plugin", "loops", *self.reference],
                "sim": ["loops", *self.sim, *self.reference]}[target]

    @staticmethod
    def code(path):
        stripped = path.with_suffix(".code")
        subprocess.run(["objcopy", "--strip-all", "-R", ".comment", str(path), str(stripped)], check=True)
        return stripped.read_bytes()


def conform(program, plugin, *options):
    """Returns the first FAIL line, or the message with which the program refused the file; None if it found no fault."""
    done = subprocess.run([program, "--deadline", "20", *options, str(plugin)], text=True, errors="replace",
                          capture_output=True, timeout=3000)
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    return failed[0] if failed else f"refused: {done.stderr.strip()}" if done.returncode == 2 else None


def require_sound(house, program):
    """Ends the program if plugrad-conform finds a fault in a plugin without a bug: its findings would then prove nothing."""
    for target in ("reference", "sim", "c11"):
        with tempfile.TemporaryDirectory() as folder:
            if found := conform(program, house.link(target, Path(folder)), "--only", "ADD,MATMUL,contract.,memory."):
                sys.exit(f"mutants.py: the plugin {target} without a bug: {found}")


def likely_cases(source, bug):
    """The names of the cases that are most likely to find a bug, as plugrad-conform's --only takes them."""
    if bug.target == "sim":
        return SIM_FIRST
    if Path(bug.file).name == "functions.hpp":  # the op that the function computes
        before = "\n".join((source / bug.file).read_text().splitlines()[:bug.line + 1])
        return next(reversed(re.findall(r"Function<PLUGRAD_OP_(\w+)>", before)), None)
    return FIRST.get(Path(bug.file).name)


def tried(house, program, bug, dtypes):
    """Returns (whether the change is a bug, the line that reports it, or None). With dtypes, only the cases of these run."""
    with tempfile.TemporaryDirectory() as folder:
        plugin = house.plant(bug, Path(folder))
        if not plugin:
            return False, None
        cases = likely_cases(house.source, bug)
        if dtypes:
            runs = [["--only", cases, "--dtype", dtypes], ["--dtype", dtypes]] if cases else [["--dtype", dtypes]]
        else:
            runs = [["--only", cases, "--dtype", "f32"], ["--only", cases], []] if cases else [[]]
        return True, next(filter(None, (conform(program, plugin, *run) for run in runs)), None)


def described(bug):
    return f"{bug.file}:{bug.line + 1}: {bug.before.strip()}  ->  {bug.after.strip()}"


def without_line(bug):
    return f"{bug.file}: {bug.before.strip()}  ->  {bug.after.strip()}"


def chosen(source, seed, dtypes):
    """Yields bugs in random order: three in plain loops, two in functions of one element, two in C, and one in streams. With
    dtypes, it yields only bugs in loops and functions: C and streams do not compute in several dtypes."""
    loops = sorted(str(path.relative_to(source)) for path in (source / "backends/reference").glob("*.cpp"))
    loops += sorted(str(path.relative_to(source)) for path in (source / LOOPS).glob("*.hpp"))
    files = [("reference", loops, 3), ("reference", ["sdk/include/plugrad/sdk/functions.hpp"], 2),
             ("c11", ["plugins/c11/c11.c"], 2), ("sim", [f"plugins/sim/{name}.cpp" for name in SIM_CHANGED], 1)]
    turns = []
    for target, paths, share in files[:2] if dtypes else files:
        bugs = [bug for path in paths for bug in bugs_of(target, path, (source / path).read_text())]
        random.Random(seed).shuffle(bugs)
        turns += [bugs] * share
    while any(turns):
        for bugs in turns:
            if bugs:
                yield bugs.pop()


def arguments(about, count, second):
    """Returns the options of a program that plants bugs; `second` names its argument after the source."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=lambda path: Path(path).resolve())
    parser.add_argument(second, type=lambda path: Path(path).resolve())
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--report", type=Path)
    return parser


def campaign(options, bugs, try_one, accepted):
    """Plants options.count bugs and reports the result of try_one for each: (whether it is a bug, the line that reports it).
    Returns whether at least 98% were found; survivors in the list `accepted` do not count as bugs."""
    planted, survivors, by, running = 0, [], collections.Counter(), {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        while planted < options.count:
            while len(running) < options.jobs and planted + len(running) < options.count:
                bug = next(bugs)
                running[pool.submit(try_one, bug)] = bug
            done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                bug = running.pop(future)
                is_bug, found = future.result()
                planted += is_bug
                if is_bug and not found:
                    survivors.append(bug)
                    print(f"SURVIVED {described(bug)}", flush=True)
                elif is_bug:
                    by[found.split()[1].split(":")[0]] += 1
                if is_bug and planted % 20 == 0:
                    print(f"{planted} planted, {len(survivors)} survived", flush=True)
    no_bugs = [bug for bug in survivors if any(part in without_line(bug) for part, _ in accepted)]
    share = 100 * (planted - len(survivors)) / (planted - len(no_bugs))
    summary = f"{planted} planted, {planted - len(survivors)} found, {len(no_bugs)} are no bugs: {share:.1f}% found"
    print(summary)
    if options.report:
        options.report.write_text(json.dumps({"summary": summary, "found_by": by.most_common(),
                                              "survivors": [described(bug) for bug in survivors]}, indent=1) + "\n")
    return share >= 98


def main():
    parser = arguments(__doc__, 300, "conform")
    parser.add_argument("--dtype", help="only cases of these dtypes, such as f16,bf16: is a bug found in them alone?")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plugrad-mutants-") as scratch:
        house = House(options.source, Path(scratch))
        require_sound(house, options.conform)
        bugs = chosen(options.source, options.seed, options.dtype)
        sys.exit(not campaign(options, bugs, lambda bug: tried(house, options.conform, bug, options.dtype), ACCEPTED))


if __name__ == "__main__":
    main()
