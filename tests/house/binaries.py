"""Checks the exported names of built files, and the folders in which they search for libraries.

binaries.py [--core FILE] [--plugin FILE]... [--program FILE]...
The core exports only names of namespace plugrad, a plugin only its entry symbol. Neither needs thread-local variables of
another library: both have static thread-local storage, and a process that loads them late has none left for that library,
as where PyTorch was imported first ("cannot allocate memory in static TLS block"). Every element of a RUNPATH begins with
$ORIGIN: an absolute element names a path of the build machine, and an empty element means the current directory.
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

ENTRY, COMMUNICATOR = "plugrad_backend_v0", "plugrad_communicator_v0"
# Itanium names: functions and variables, vtable, VTT, typeinfo and its name, guards, thunks, of something in ::plugrad.
OURS = re.compile(r"_Z(T[VTIS]|GV|GR|Th[^_]*_|Tv[^_]*_[^_]*_)?N[VKRO]*7plugrad")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(file):
    """The names that a shared object exports, without symbol versions."""
    lines = run("nm", "-D", "--defined-only", "--format=posix", file).splitlines()
    return [line.split()[0].partition("@")[0] for line in lines]


def runpath(file):
    """The elements of RPATH and RUNPATH together; [] if the file has neither."""
    found = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", run("readelf", "-dW", file))
    return [element for path in found for element in path.split(":")]


def core_faults(file):
    names = exported(file)
    faults = [f"{file}: exports {name}, which is not in namespace plugrad" for name in names if not OURS.match(name)]
    if len(faults) == len(names):
        faults.append(f"{file}: exports nothing of namespace plugrad")
    return faults


def plugin_faults(file):
    names = exported(file)
    entry = COMMUNICATOR if Path(file).name.startswith("libplugrad-communicator-") else ENTRY
    return [] if names == [entry] else [f"{file}: exports {', '.join(names) or 'nothing'}; expected only {entry}"]


def thread_local_faults(file):
    symbols = (line.split() for line in run("readelf", "-W", "--dyn-syms", file).splitlines())
    return [f"{file}: needs the thread-local variable {fields[7]} of another library, which static storage cannot reach"
            for fields in symbols if len(fields) > 7 and fields[3] == "TLS" and fields[6] == "UND"]


def runpath_faults(file):
    return [f"{file}: RUNPATH has the element '{element}'; expected $ORIGIN/..."
            for element in runpath(file) if not re.match(r"\$ORIGIN(/|$)", element)]


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for kind in ("core", "plugin", "program"):
        parser.add_argument(f"--{kind}", action="append", default=[], metavar="FILE")
    files = parser.parse_args(arguments)
    everything = files.core + files.plugin + files.program
    faults = [fault for file in files.core for fault in core_faults(file)]
    faults += [fault for file in files.plugin for fault in plugin_faults(file)]
    faults += [fault for file in files.core + files.plugin for fault in thread_local_faults(file)]
    faults += [fault for file in everything for fault in runpath_faults(file)]
    for fault in faults:
        print(fault)
    print(f"{len(everything)} files, {len(faults)} faults")
    return 1 if faults or not everything else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
