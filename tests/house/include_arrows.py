"""Checks all sources below a root and fails on any #include that docs/architecture.md does not allow.
It also fails if a room of the core uses names of higher rooms or implements another room's header: see rooms.py.

include_arrows.py ROOT
"""
import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

import rooms

SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".cc", ".inl", ".def", ".cu", ".cuh", ".in"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:<([^>]+)>|"([^"]+)"|(\S+))', re.MULTILINE)

# External headers, by the names that rules use for them.
OUTSIDE = {
    "dll": ["boost/dll/*", "boost/dll.hpp"],
    "program_options": ["boost/program_options.hpp", "boost/program_options/*"],
    "asio": ["boost/asio/*"],
    "gloo": ["gloo/*"],
    "mpi": ["mpi.h", "mpi-ext.h"],
    "zlib": ["zlib.h"],
    "json": ["nlohmann/*"],
    "simd": ["hwy/*", "xbyak/*"],
    "eigen": ["Eigen/*"],
    "cuda": ["cuda_runtime.h"],
    "cublas": ["cublas_v2.h", "cublasLt.h"],
    "vulkan": ["vulkan/vulkan.h"],
    "gtest": ["gtest/*", "gmock/*"],
    "benchmark": ["benchmark/*"],
    "torch": ["torch/*", "ATen/*", "c10/*"],
    "python": ["Python.h", "structmember.h", "nanobind/*"],
    "opencl": ["CL/*"],
    "system": ["sys/*", "linux/*", "arpa/inet.h", "net/if.h", "dlfcn.h", "elf.h", "fcntl.h", "link.h", "poll.h",
               "pthread.h", "sched.h", "signal.h", "spawn.h", "termios.h", "ucontext.h", "unistd.h", "malloc.h",
               "cxxabi.h", "execinfo.h", "cpuid.h", "immintrin.h", "arm_neon.h", "sanitizer/*"],
    "c": [name + ".h" for name in ("assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "limits", "locale",
                                   "math", "setjmp", "stdalign", "stdarg", "stdatomic", "stdbool", "stddef", "stdint",
                                   "stdio", "stdlib", "string", "threads", "time", "uchar", "wchar")],
}
STANDARD = {"c", "c++"}
MACHINE = STANDARD | {"system"}
SDK = ["sdk/include", "sdk/cache"]
PUBLIC = SDK + ["core/*/public"]
TESTED = PUBLIC + ["tests", "tests/*", "tools", "process", "sdk/conformance", "backends/*/public", "plugins/*/public"]

# A folder, the folders of this tree that it may include, and the external headers. The first row that matches a file counts.
# X/public is an include directory of X, X/inner the rest of X. {0} and {1} are the texts that the row's stars matched.
RULES = [
    ("sdk/include", SDK, STANDARD),
    ("sdk/cache", SDK, MACHINE),
    ("sdk/conformance", PUBLIC + ["sdk/conformance", "process"], MACHINE | {"program_options", "json"}),
    ("sdk/data", SDK + ["sdk/conformance"], STANDARD | {"json"}),
    ("sdk/loops", SDK, STANDARD),
    ("core/all", PUBLIC, set()),
    ("process", ["process"], MACHINE),
    ("core/runtime", SDK + ["core/runtime/*", "process"], MACHINE | {"dll"}),
    ("core/probe", SDK + ["core/runtime/inner"], MACHINE),
    ("core/tensor", SDK + ["core/runtime/*", "core/tensor/*"], STANDARD),
    ("core/autograd", SDK + ["core/runtime/*", "core/tensor/*", "core/autograd/*"], STANDARD),
    ("core/steps", SDK + ["core/runtime/*", "core/tensor/*", "core/autograd/*", "core/steps/*"], STANDARD),
    ("core/ops", SDK + ["core/runtime/*", "core/tensor/*", "core/autograd/*", "core/ops/*"], STANDARD),
    ("core/func", SDK + ["core/runtime/*", "core/tensor/*", "core/autograd/*", "core/ops/*", "core/func/*"], STANDARD),
    ("core/optimize", SDK + ["core/runtime/*", "core/tensor/*", "core/autograd/*", "core/ops/*", "core/func/public",
                             "core/optimize/*"], STANDARD),
    ("core/nn", SDK + ["core/runtime/*", "core/tensor/*", "core/autograd/*", "core/ops/*", "core/nn/*"], STANDARD),
    ("core/io", SDK + ["core/runtime/*", "core/tensor/*", "core/autograd/*", "core/steps/*", "core/ops/*", "core/io/*"],
     MACHINE | {"zlib", "json"}),
    ("core/distributed", SDK + ["core/runtime/*", "core/tensor/*", "core/autograd/*", "core/ops/*", "core/nn/public",
                                "core/distributed/*", "process"], MACHINE | {"asio"}),
    ("core/training", SDK + ["core/*/public", "core/training/*"], MACHINE),
    ("backends/cpu", SDK + ["backends/cpu/*"], MACHINE | {"simd", "eigen"}),
    ("backends/cuda", SDK + ["backends/cuda/*"], MACHINE | {"cuda"}),
    ("backends/vulkan", SDK + ["backends/vulkan/*"], MACHINE | {"vulkan"}),
    ("backends/*", SDK + ["backends/{0}/*"], MACHINE),
    ("plugins/sim", SDK + ["plugins/sim/*", "backends/reference/public"], MACHINE),
    ("plugins/gloo", SDK + ["plugins/gloo/*"], MACHINE | {"gloo"}),
    ("plugins/nccl", SDK + ["plugins/nccl/*", "backends/cuda/inner"], MACHINE),
    ("plugins/mpi", SDK + ["plugins/mpi/*"], MACHINE | {"mpi"}),
    ("plugins/sim_communicator", SDK + ["plugins/sim_communicator/*"], MACHINE),
    ("plugins/c11", SDK + ["plugins/c11/*"], {"c"}),
    ("plugins/*", SDK + ["plugins/{0}/*", "backends/{0}/public"], STANDARD),
    ("examples/plugin", SDK, STANDARD),
    ("examples/plugin-opencl", SDK, STANDARD | {"opencl"}),
    ("examples/*", PUBLIC + ["examples/{0}"], MACHINE),
    ("tools", PUBLIC + ["tools"], MACHINE | {"program_options", "json"}),
    ("python", PUBLIC + ["python"], MACHINE | {"python"}),
    ("bridges/torch", PUBLIC + ["bridges/torch"], MACHINE | {"torch"}),
    ("bench/vulkan", SDK + ["sdk/conformance", "backends/vulkan/*"], MACHINE),
    ("bench", PUBLIC + ["bench"], MACHINE | {"benchmark", "torch", "cuda", "gloo"}),
    ("tests/streams", TESTED + ["core/runtime/inner"], MACHINE | {"gtest"}),
    ("tests/runtime", TESTED + ["core/runtime/inner", "core/steps/inner"], MACHINE | {"gtest"}),
    ("tests/cublas", TESTED + ["backends/cuda/inner"], MACHINE | {"gtest", "cublas"}),
    ("tests/nccl", TESTED + ["plugins/nccl/inner"], MACHINE),
    ("tests/nvrtc", TESTED + ["backends/cuda/inner"], MACHINE | {"gtest"}),
    ("tests/vulkan", TESTED + ["backends/vulkan/inner"], MACHINE | {"gtest"}),
    ("tests", TESTED, MACHINE | {"gtest"}),
    ("tests/*", TESTED, MACHINE | {"gtest", "json", "zlib"}),
]


def outside_kind(name):
    """The name under which a rule allows this header, or None if no rule names it."""
    if re.fullmatch(r"[a-z_0-9]+", name):
        return "c++"
    return next((kind for kind, patterns in OUTSIDE.items() if any(fnmatchcase(name, p) for p in patterns)), None)


def place(path):
    """The folder that a file of the repository belongs to, as RULES name it; None if no rule names it."""
    parts = PurePosixPath(path).parts
    if parts[:4] == ("core", "include", "plugrad", "plugrad.hpp"):
        return "core/all/public"
    if parts[:3] == ("core", "include", "plugrad") and len(parts) > 4:
        return f"core/{parts[3]}/public"
    if parts[0] in ("core", "backends", "plugins") and len(parts) > 2:
        return f"{parts[0]}/{parts[1]}/" + ("public" if parts[2] == "include" else "inner")
    if parts[:1] == ("sdk",) and parts[-1] == "cache.hpp":  # files belong to the system
        return "sdk/cache"
    if parts[:2] == ("bench", "vulkan"):
        return "bench/vulkan"
    if parts[0] in ("tools", "bench", "python", "process") or parts[0] == "tests" and len(parts) == 2:
        return parts[0]
    if parts[0] in ("sdk", "tests", "examples", "bridges") and len(parts) > 2:
        return f"{parts[0]}/{parts[1]}"
    return None


def rule_for(folder):
    room = re.sub(r"/(public|inner)$", "", folder)
    for pattern, ours, outside in RULES:
        if fnmatchcase(room, pattern):
            stars = re.fullmatch(pattern.replace("*", "([^/]+)"), room)
            return [p.format(*stars.groups()) for p in ours], outside
    return None


def include_roots(root, is_test):
    """The directories whose headers are included as <plugrad/...>; a test may have replacements for external headers."""
    stand_ins = sorted(root.glob("tests/*/include")) if is_test else []
    return [*stand_ins, root / "sdk/include", root / "core/include", *sorted(root.glob("backends/*/include")),
            *sorted(root.glob("plugins/*/include")), *sorted(root.glob("bridges/*"))]


def locate(root, roots, including, name, quoted):
    """The file of the repository that an include names, relative to root; None for an external header."""
    candidates = [base / name for base in roots] + [root / name]
    if quoted:
        candidates.insert(0, including.parent / name)
    for candidate in candidates:
        if candidate.is_file() and candidate.resolve().is_relative_to(root):
            return candidate.resolve().relative_to(root).as_posix()
    return None


def check_include(root, roots, file, rule, name, quoted):
    """Returns why this include is not allowed, or None."""
    ours, outside = rule
    if ".." in PurePosixPath(name).parts:
        return "write the full path from the root, without '..'"
    target = locate(root, roots, file, name, quoted)
    if target is not None:
        folder = place(target)
        allowed = folder is not None and any(fnmatchcase(folder, p) for p in ours)
        return None if allowed else f"is {folder or target}; allowed of ours: {', '.join(ours)}"
    if name.startswith(("plugrad/", "process/", "core/", "backends/", "plugins/", "sdk/", "tests/", "tools/", "bench/",
                        "python/", "bridge/")):
        return "there is no such file"
    kind = outside_kind(name)
    return None if kind in outside else f"is from outside ({kind or 'unknown'}); allowed: {', '.join(sorted(outside))}"


def sources(root):
    """The source files below root: no build trees, no hidden directories."""
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        skipped = any(p.startswith(".") for p in parts) or parts[0] == "build" or parts[0].startswith("build-")
        if not skipped and path.is_file() and path.suffix in SUFFIXES:
            yield path


def violations(root):
    """One line for each include that is not allowed, and the number of includes checked."""
    root = root.resolve()
    found, seen = [], 0
    for file in sources(root):
        relative = file.relative_to(root).as_posix()
        text = file.read_text(encoding="utf-8", errors="replace")
        folder = place(relative)
        roots = include_roots(root, relative.startswith("tests/"))
        rule = rule_for(folder) if folder else None
        for match in INCLUDE.finditer(text):
            seen += 1
            name = match.group(1) or match.group(2) or match.group(3)
            if match.group(3):
                reason = "an include by a macro cannot be followed"
            elif rule is None:
                reason = "no rule names this folder: add a row to docs/architecture.md and tests/house/include_arrows.py"
            else:
                reason = check_include(root, roots, file, rule, name, bool(match.group(2)))
            if reason:
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{relative}:{line}: {name} {reason}")
    return found, seen


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    root = Path(arguments[0]).resolve()
    found, seen = violations(root)
    core = [path for path in sources(root) if path.is_relative_to(root / "core")]
    found += rooms.violations({path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in core})
    for line in found:
        print(line)
    print(f"{seen} includes, {len(core)} files of the core, {len(found)} violations")
    return 1 if found or seen == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
