"""Runs the array API standard's own suite, https://github.com/data-apis/array-api-tests, and prints how much of it passes.

run.py SUITE [--module NAME] [--examples N] [pytest arguments]

SUITE is a folder; the script clones the suite into it at a pinned commit unless it is there. It needs the Python packages
pytest, pytest-json-report, hypothesis and ndindex, and an installed plugrad. --module: plugrad.array_api (the default),
which libraries find by __array_namespace__(), or plugrad. The exit status is 1 if less than 95% of the core
or of fft passes.
"""

import argparse
import os
import re
import subprocess
import sys
import xml.etree.ElementTree
from collections import Counter
from pathlib import Path

URL = "https://github.com/data-apis/array-api-tests"
COMMIT = "55fcc60179efa2680ddd6cd926ddf17b83530e2b"
HERE = Path(__file__).resolve().parent
VERSION = "2024.12"
MISSING_DTYPES = "uint16,uint32,uint64"
WANTED = 95

def prepare(suite: Path) -> None:
    """Clones the suite with its submodule, the standard's stubs."""
    if not (suite / "conftest.py").exists():
        subprocess.run(["git", "clone", URL, suite], check=True)
        subprocess.run(["git", "checkout", "-q", COMMIT], cwd=suite, check=True)
        subprocess.run(["git", "submodule", "update", "--init"], cwd=suite, check=True)


def listed(module: str, name: str) -> Path:
    """Writes the lines of a list that apply to the module, without the reasons, to a file, and returns its path."""
    kept = []
    for line in (HERE / name).read_text(encoding="utf-8").splitlines():
        test, _, reason = (part.strip() for part in line.partition("#"))
        scope = re.match(r"\((\S+) only\)", reason)
        if test and (not scope or scope.group(1) == module):
            kept.append(test)
    file = Path(os.environ.get("TMPDIR", "/tmp")) / f"plugrad-{os.getpid()}-{name}"
    file.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return file


def run(suite: Path, module: str, examples: int, more: list[str]) -> Path:
    """Runs the suite and returns the file of results."""
    results = suite / f"results-{module}.xml"
    results.unlink(missing_ok=True)
    skips, xfails = listed(module, "skips.txt"), listed(module, "xfails.txt")
    environment = {**os.environ, "ARRAY_API_TESTS_MODULE": module, "ARRAY_API_TESTS_VERSION": VERSION,
                   "ARRAY_API_TESTS_SKIP_DTYPES": MISSING_DTYPES}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:warnings", "--tb=short", "--disable-deadline",
               f"--max-examples={examples}", f"--junitxml={results}", f"--skips-file={skips}",
               f"--xfails-file={xfails}", *(more or ["array_api_tests"])]
    subprocess.run(command, cwd=suite, env=environment, check=False)
    skips.unlink()
    xfails.unlink()
    return results


def group_of(case: xml.etree.ElementTree.Element) -> str:
    name = f"{case.get('classname')}.{case.get('name')}"
    return "fft" if "fft" in name else "linalg" if "linalg" in name else "core"


def outcome_of(case: xml.etree.ElementTree.Element) -> str:
    skipped = case.find("skipped")
    if skipped is not None:
        return "expected to fail" if skipped.get("type") == "pytest.xfail" else "skipped"
    return "failed" if case.find("failure") is not None or case.find("error") is not None else "passed"


def report(results: Path) -> float:
    """Prints the counts of each group and returns the lower percentage of the core and fft, in which an expected failure
    is a failure."""
    counts: dict[str, Counter[str]] = {}
    for case in xml.etree.ElementTree.parse(results).iter("testcase"):
        counts.setdefault(group_of(case), Counter())[outcome_of(case)] += 1
    shares = {}
    for group, found in sorted(counts.items()):
        ran = found.total() - found["skipped"]
        shares[group] = 100 * found["passed"] / ran if ran else 0.0
        print(f"{group}: {found['passed']} of {ran} pass, {shares[group]:.1f}%; {found['failed']} fail, "
              f"{found['expected to fail']} are expected to, {found['skipped']} are skipped")
    return min(shares.get(group, 0.0) for group in ("core", "fft"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path)
    parser.add_argument("--module", default="plugrad.array_api")
    parser.add_argument("--examples", type=int, default=100, help="how many examples each test tries")
    arguments, more = parser.parse_known_args()
    suite = arguments.suite.resolve()
    prepare(suite)
    share = report(run(suite, arguments.module, arguments.examples, more))
    return int(share < WANTED)


if __name__ == "__main__":
    sys.exit(main())
