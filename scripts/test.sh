#!/bin/bash
# Builds and tests plugrad, starting from a clean machine.
#   test.sh [quick]  installs packages, builds a release, runs the quick tests (also those of the installed tree), builds the
#                    Python package as a wheel, installs it in build/venv, and runs its tests
#   test.sh full     does the same and runs the slower tests, then runs again, under the address and undefined-behaviour
#                    sanitizers, all tests that do not merely repeat the same code, and under the thread sanitizer the
#                    tests that use threads
#   test.sh long     does the same as full and runs the soak tests, which take hours
# Prints the tests that it left out and why. The last line is ctest's summary.
set -euo pipefail
cd "$(dirname "$0")/.."

level=${1:-quick}
case "$level" in
  quick) labels='^quick$' ;;
  full) labels='^(quick|full)$' ;;
  long) labels='^(quick|full|long)$' ;;
  *)
    echo "test.sh: there is no level '$level'; the levels are: quick full long" >&2
    exit 2
    ;;
esac
jobs=$(nproc)
verdict=

# CMake would otherwise use make, which may not be installed.
export CMAKE_GENERATOR=Ninja

times=()
timed() {  # timed PART COMMAND ...: runs the command and records how long it took
  local part=$1 started=$SECONDS
  shift
  "$@"
  times+=("$(printf '%5d s  %s' $((SECONDS - started)) "$part")")
}

build() {  # build PRESET DIRECTORY [CMAKE-ARGUMENT ...]
  local preset=$1 log=$2/configure.log
  mkdir -p "$2"
  shift 2
  if ! cmake --preset "$preset" "$@" >"$log" 2>&1; then
    cat "$log"
    return 1
  fi
  sed -n 's/^-- left out: /left out: /p' "$log"
  cmake --build --preset "$preset" --parallel "$jobs"
}

# Prints one line for each reason why tests were skipped. GoogleTest prints the reason after "FILE:LINE: Skipped", plugrad's
# scripts after "skipped: ", plugrad-conform on the line of the failure. CTest stores the output in its log.
print_skipped() {  # print_skipped LOG
  awk '
    function skip(why) { if (!count[why]++) first[why] = test }
    / Testing: / { test = $0; sub(/^.* Testing: /, "", test); reason = "no reason given"; take = 0 }
    /^\[  SKIPPED \] .*\(/ { skip(reason); reason = "no reason given"; take = 0 }
    take && NF { reason = $0; take = 0 }
    /: Skipped$/ { take = 1 }
    /^skipped: / { skip(substr($0, 10)) }
    /open returned .*offers no cooperative matrices/ { skip($0) }
    END { for (why in count) print "skipped: " first[why] (count[why] > 1 ? " and " count[why] - 1 " more" : "") ": " why }
  ' "$1" | sort
}

run_tests() {  # run_tests PRESET DIRECTORY [PREFIX ...] -- CTEST-ARGUMENT ...
  local preset=$1 directory=$2 prefix=() status=0
  shift 2
  while [ "$1" != -- ]; do prefix+=("$1"); shift; done
  shift
  "${prefix[@]}" ctest --preset "$preset" --parallel "$jobs" "$@" 2>&1 | tee "$directory/ctest.log" || status=$?
  if [ -e "$directory/Testing/Temporary/LastTest.log" ]; then print_skipped "$directory/Testing/Temporary/LastTest.log"; fi
  verdict=$(grep -E '^[0-9]+% tests passed' "$directory/ctest.log" || true)
  if [ "$status" -ne 0 ]; then
    echo "${preset}: ${verdict:-ctest ended with status $status}"
    return "$status"
  fi
}

# Installs the Python package from its wheel in build/venv. Core and plugins come from the release build.
venv=build/venv
build_python() {
  local python=${PYTHON:-/usr/bin/python3} log=build/python.log
  if [ ! -x "$venv/bin/python" ]; then "$python" -m venv "$venv"; fi
  local pip=("$venv/bin/python" -m pip --quiet --disable-pip-version-check)
  rm -f build/wheels/plugrad-*.whl
  if ! { "${pip[@]}" wheel --no-deps --wheel-dir build/wheels . &&
         "${pip[@]}" install "$(ls build/wheels/plugrad-*.whl)[test]" &&
         "${pip[@]}" install --no-deps --force-reinstall build/wheels/plugrad-*.whl; } >"$log" 2>&1; then
    cat "$log"
    echo "python: the package could not be built"
    return 1
  fi
}

test_python() {
  # The seconds for which the fuzzers of arguments and of archives run.
  if [ "$level" = long ]; then export PLUGRAD_ARGUMENT_SECONDS=7200 PLUGRAD_ARCHIVE_SECONDS=600; fi
  "$venv/bin/python" -m pytest --quiet -p no:cacheprovider -rs python/tests
  local -x PLUGRAD_PLUGIN_PATH=$PWD/build/test-plugins PLUGRAD_TEST_DEVICE
  for PLUGRAD_TEST_DEVICE in reference sim cuda-emu; do
    echo "python: the samples of all ops on $PLUGRAD_TEST_DEVICE, and linear algebra, whose factors the host computes"
    "$venv/bin/python" -m pytest --quiet -p no:cacheprovider -rs python/tests/test_samples.py
    PLUGRAD_FALLBACK=allow "$venv/bin/python" -m pytest --quiet -p no:cacheprovider -rs python/tests/test_linalg.py
  done
}

# The package plugrad-torch. PLUGRAD_TORCH=off leaves it out, and with it the download of PyTorch.
test_torch() {
  if [ "${PLUGRAD_TORCH:-}" = off ]; then
    echo "left out: plugrad-torch (PLUGRAD_TORCH=off)"
  elif [ "$level" = quick ]; then
    echo "left out: PyTorch's operators on all dtypes, PyTorch 2.11 (scripts/test.sh full)"
    PLUGRAD_TORCH_TESTS='not full' scripts/torch.sh
  else
    scripts/torch.sh 2.11.0 2.15.0
  fi
}

run_tidy() {
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    "$(. scripts/pinned.sh && pinned_name clang-tidy)"
  scripts/tidy.sh
}

groups=(build gpu distributed test data python bench)
timed 'packages' scripts/install.sh "${groups[@]}"
. scripts/ccache.sh
# quick compiles the CUDA plugin to PTX alone, the other levels for all architectures that nvcc knows.
if [ "$level" = quick ]; then timed 'release: build' build release build -DPLUGRAD_CUDA_ARCHITECTURES=75-virtual
else timed 'release: build' build release build -UPLUGRAD_CUDA_ARCHITECTURES; fi
timed 'release: tests' run_tests release build -- --label-regex "$labels"
timed 'Python: build' build_python
timed 'format' scripts/format.sh --check
timed 'Python: tests' test_python
timed 'PyTorch' test_torch

if [ "$level" != quick ]; then
  timed 'clang-tidy' run_tidy
  timed 'asan: build' build asan build-asan
  timed 'asan: tests' run_tests asan build-asan -- --label-regex '^(quick|full)$'
  timed 'tsan: build' build tsan build-tsan
  # The thread sanitizer of gcc 12 cannot map its shadow memory if the kernel randomises more than 28 bits of addresses.
  fixed_addresses=()
  if setarch "$(uname -m)" -R true 2>/dev/null; then fixed_addresses=(setarch "$(uname -m)" -R); fi
  # Tests that use one thread are left out: naive backends, headers, file formats, plugrad-conform's own tests.
  one_thread='^(reference|c11|contract|house)\.|^conform\.c11$'
  # The emulator runs kernels on one thread at a time, so its own tests and its tests of memory and threads suffice.
  one_thread+='|^Conformance\.(reference|cuda_emu)|^cuda-emu\.(core|large|tiles|safetensors|training|Faults|Neighbours)'
  one_thread+='|^cuda-emu\.(cuda|demo|nn|loops|compile)_|^nvrtc\.(FusionSource|fusions)|^fuzz\.'
  one_thread+='|^(Mutation|Conform|PlantedBug|Bounds|Philox|References|Sums|Truncated|Idx|LossPlot|AtomicFile)\.'
  timed 'tsan: tests' run_tests tsan build-tsan "${fixed_addresses[@]}" -- \
    --label-regex '^(quick|full)$' --exclude-regex "$one_thread"
else
  echo "left out: sanitizers and slower tests (scripts/test.sh full)"
fi
printf '%s\n' 'how long each part took:' "${times[@]}"
echo "$verdict"
