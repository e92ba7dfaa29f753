#!/bin/bash
# Runs all checks that need a GPU, on a machine that has only a GPU and its driver: no network, toolkit or packages.
#   gpu.sh pack [FOLDER]                builds the plugins (sm_90 and PTX), programs and tests, and packs them with
#                                       their libraries into FOLDER (default build/gpu-pack); less than 50 MB
#   FOLDER/gpu.sh run quick             runs conformance, the tests and a training, and conformance and a training on
#                                       Vulkan, if the machine has a driver for it
#   FOLDER/gpu.sh run sanitize          runs the kernels under compute-sanitizer
#   FOLDER/gpu.sh run bench             compares the GPU with the CPU, and with PyTorch eager if python3 has torch
# A run ends within 8 minutes, or PLUGRAD_GPU_SECONDS, and writes FOLDER/gpu-quick-NAME.md (gpu-sanitize-, gpu-bench-), for
# bench/results/. As many checks run in parallel as there are processors; timed steps run alone.
# Exit status: 0 success, 1 failure, 2 bad usage, 77 no GPU. Set PLUGRAD_CUBLAS if cuBLAS is not found.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
limit=50000000 seconds=${PLUGRAD_GPU_SECONDS:-470} no_gpu=77

usage() {
  sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

# --- pack

tests=(core_test compile_test nn_test cuda_random_programs_test cuda_sizes_test cuda_network_sizes_test runtime_memory_test)
programs=(plugrad plugrad-conform)
plugins=(cuda vulkan cpu reference)
benches=(bench_crossover bench_rates bench_compiled bench_cuda_floor)
# These tests read files of the source tree or load plugins for tests, and the pack contains neither.
left_out=Print.AsNumPy:Modules.ReturnWhatPyTorchsReturn:GradientRows.EveryPublicFunctionHasOneOrNoGradient
left_out+=:Optimizers.FollowThemWithoutFusedKernels:MemoryInFlight.IsWaitedForBeforeThereIsAnError
data=/usr/share/datasets/fashion-mnist

# Lists the libraries of programs, except the C library and its loader, which the machine provides.
libraries_of() {
  ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -Ev '/(libc|libm|libdl|librt|libpthread|ld-linux[^/]*|libplugrad)\.so'
}

copy_stripped() {  # copy_stripped FILE FOLDER
  cp -L "$1" "$2/"
  strip --strip-unneeded "$2/$(basename "$1")"
}

pack() {
  local folder build file size
  folder=$(realpath -m "${1:-$here/../build/gpu-pack}")
  cd "$here/.."
  build=${PLUGRAD_GPU_BUILD:-build-gpu}
  cmake --preset release -B "$build" -DPLUGRAD_CUDA=ON "-DPLUGRAD_CUDA_ARCHITECTURES=90-real;90-virtual" -DPLUGRAD_VULKAN=ON
  cmake --build "$build" --parallel "$(nproc)" --target plugrad-cli plugrad-conform "${plugins[@]/#/plugrad-backend-}" \
    "${benches[@]}" "${tests[@]}"

  rm -rf "$folder"
  mkdir -p "$folder/bin" "$folder/lib/plugrad/plugins-v0"
  for file in "${programs[@]/#/$build/bin/}" "${tests[@]/#/$build/bin/}" "${benches[@]/#/$build/bench/}"; do
    copy_stripped "$file" "$folder/bin"
  done
  copy_stripped "$build/lib/libplugrad.so.0" "$folder/lib"
  copy_stripped "$build/lib/plugrad/plugrad-probe" "$folder/lib/plugrad"
  for file in "${plugins[@]}"; do
    copy_stripped "$build/lib/plugrad/plugins-v0/libplugrad-backend-$file.so" "$folder/lib/plugrad/plugins-v0"
  done
  # Servers have NVIDIA's driver, but seldom Vulkan's loader.
  file=$(ldconfig -p | sed -n 's/.*libvulkan\.so\.1 (libc6,x86-64) => //p' | head -n 1)
  if [ -n "$file" ]; then cp -L "$file" "$folder/lib/libvulkan.so.1"; fi
  for file in $(libraries_of "$folder"/bin/* "$folder"/lib/*.so* "$folder"/lib/plugrad/plugins-v0/*); do
    copy_stripped "$file" "$folder/lib"
  done
  cp "$here/gpu.sh" bench/rates_torch.py "$folder/"
  git describe --always --dirty >"$folder/version" 2>/dev/null || echo unknown >"$folder/version"
  pack_data "$folder"
  tar -C "$folder" -czf "$folder/programs.tar.gz" bin lib  # one third of the size; every machine has gzip
  rm -r "$folder/bin" "$folder/lib"

  size=$(du -sb "$folder" | cut -f1)
  echo "$folder: $((size / 1000000)) MB"
  if [ "$size" -ge "$limit" ]; then
    echo "gpu.sh: the pack is larger than $((limit / 1000000)) MB" >&2
    exit 1
  fi
}

# xz compresses the images better than their own gzip does.
pack_data() {
  local file
  if [ ! -d "$data" ] || ! command -v xz >/dev/null; then
    echo "left out: Fashion-MNIST, which needs $data (Debian: dataset-fashion-mnist) and xz"
    return
  fi
  mkdir -p "$1/data"
  for file in "$data"/*.gz; do zcat "$file" | xz -9e >"$1/data/$(basename "$file" .gz).xz"; done
}

# --- run

left() { echo $((deadline - $(date +%s))); }

say() { echo "$*" | tee -a "$report"; }

# Runs a step, and writes its name, its result and the end of its output into a folder.
perform() {  # perform FOLDER NAME COMMAND ...
  local folder=$1 name=$2 status=0 kept=${lines:-6} started result
  shift 2
  started=$(date +%s)
  if [ "$(left)" -lt 5 ]; then
    echo "- $name: FAILED, not run: no time left" >"$folder/result"
    return
  fi
  timeout "$(left)" "$@" >"$folder/log" 2>&1 || status=$?
  result="- $name: passed, $(($(date +%s) - started)) s"
  if [ "$status" != 0 ]; then
    result="- $name: FAILED with status $status after $(($(date +%s) - started)) s (124: timeout)"
    kept=60
  fi
  {
    echo; echo '```'
    echo "$*" | sed "s|$here/||g; s|$scratch/||g"
    tail -n "$kept" "$folder/log" | cut -c1-1000 | sed "s|$here/||g; s|$scratch/||g"
    echo '```'; echo
  } >"$folder/details"
  echo "$result" >"$folder/result"
}

# Starts a step in parallel with other steps.
start() {  # start NAME COMMAND ...
  local folder
  folder=$scratch/steps/$(printf %03d "$steps")
  steps=$((steps + 1))
  mkdir -p "$folder"
  while [ "$(jobs -rp | wc -l)" -ge "$processors" ]; do wait -n || true; done
  perform "$folder" "$@" &
}

# Waits for the steps and reports them in the order of their start.
finish() {
  local folder
  wait
  for folder in "$scratch"/steps/*; do
    if ! grep -q ' passed, ' "$folder/result" 2>/dev/null; then failed=1; fi
    say "$(cat "$folder/result" 2>/dev/null || echo "- a step FAILED without a result")"
    cat "$folder/details" >>"$report" 2>/dev/null || true
  done
  rm -rf "$scratch/steps"
}

step() {  # step NAME COMMAND ...
  start "$@"
  finish
}

# Finds cuBLAS in a toolkit or among PyTorch's files, in case the loader does not find it.
find_cublas() {
  local folder file of_torch
  if [ -n "${PLUGRAD_CUBLAS:-}" ]; then return; fi
  of_torch='import sys; print(*(p + "/nvidia/" + d + "/lib" for p in sys.path if p for d in ("cu13", "cu12", "cublas")))'
  for folder in "${CUDA_HOME:-/nowhere}/lib64" /usr/local/cuda/lib64 /usr/local/cuda/targets/*/lib \
    $(python3 -c "$of_torch" 2>/dev/null); do
    for file in "$folder"/libcublas.so.1[23]; do
      if [ -e "$file" ]; then
        export PLUGRAD_CUBLAS=$file
        # libcublas needs libcublasLt, which is in the same folder.
        export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$folder
        return
      fi
    done
  done
}

demand_gpu() {
  local why
  if "$here/bin/plugrad" devices 2>/dev/null | grep -q '^cuda:0'; then return; fi
  why=$("$here/bin/plugrad" backends --verbose 2>&1 | sed -n '/backend-cuda\.so/,$s/^ *reason *//p' | head -n 1) || true
  echo "gpu.sh: no GPU here: ${why:-the plugin gives no reason}" >&2
  exit "$no_gpu"
}

head_of_report() {
  local name
  name=$("$here/bin/plugrad" devices | sed -n 's/^cuda:0 *//p' | head -n 1 | sed 's/  .*//')
  report=$here/gpu-$1-$(tr 'A-Z /' 'a-z--' <<<"$name").md
  : >"$report"
  say "# gpu.sh run $1"
  say ""
  say "- device: $name"
  say "- driver: $(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 || echo unknown)"
  say "- processor: $(lscpu | sed -n 's/^Model name: *//p' | head -n 1), $(nproc) threads"
  say "- cuBLAS: ${PLUGRAD_CUBLAS:-as the loader finds it}"
  say "- plugrad: $(cat "$here/version"), $(date -u +%Y-%m-%d)"
  say ""
}

unpack_data() {
  local file
  if [ ! -d "$here/data" ] || ! command -v xz >/dev/null; then return 1; fi
  mkdir -p "$scratch/data"
  for file in "$here"/data/*.xz; do xz -dc "$file" | gzip -1 >"$scratch/data/$(basename "$file" .xz).gz"; done
}

run_quick() {
  local plugin=$here/lib/plugrad/plugins-v0/libplugrad-backend-cuda.so device program dtype lines=3
  start "conformance" "$here/bin/plugrad-conform" --require-tier0 --jobs 8 "$plugin"
  for dtype in f32 f64 bf16 i64 i32; do
    start "conformance of fusions of $dtype" "$here/bin/plugrad-conform" --only fusion.$dtype --option fusions=2 "$plugin"
  done
  start "conformance of graphs" "$here/bin/plugrad-conform" --only list. "$plugin"
  export PLUGRAD_TEST_DEVICE=cuda
  for program in "${tests[@]}"; do
    start "$program" "$here/bin/$program" --gtest_brief=1 "--gtest_filter=-$left_out"
  done
  PLUGRAD_CUDA_OPTIONS=graphs=0 start "compile_test without graphs" "$here/bin/compile_test" --gtest_brief=1
  PLUGRAD_CUDA_OPTIONS=fusions=2 PLUGRAD_RANDOM_STEPS=40 start "compile_test with fusions, 40 random steps" \
    "$here/bin/compile_test" --gtest_brief=1
  start "moons" "$here/bin/plugrad" train --data moons --device cuda:0 --out "$scratch/moons"
  finish
  if unpack_data; then
    for device in cpu cuda:0; do
      step "Fashion-MNIST on $device, 3 epochs" "$here/bin/plugrad" train \
        --data fashion-mnist --data-dir "$scratch/data" --device "$device" --epochs 3 --out "$scratch/fashion-$device"
      say "  $(grep -E '"(test_accuracy|images_per_second)"' "$scratch/fashion-$device/results.json" | tr -d '\n')"
    done
  else
    say "- left out: Fashion-MNIST, which needs the pack's data and xz"
  fi
  run_vulkan
}

# In a container, NVIDIA's driver often lacks the file that tells Vulkan's loader of it.
find_vulkan_driver() {
  local library folder
  if [ -n "${VK_DRIVER_FILES:-}" ]; then return; fi
  for folder in /usr/share /usr/local/share /etc; do
    if compgen -G "$folder/vulkan/icd.d/nvidia*" >/dev/null; then return; fi
  done
  for library in libGLX_nvidia.so.0 libEGL_nvidia.so.0; do
    if ! ldconfig -p | grep -F "$library" >/dev/null; then continue; fi
    printf '{"file_format_version": "1.0.1", "ICD": {"library_path": "%s", "api_version": "1.3.0"}}\n' "$library" \
      >"$scratch/nvidia_icd.json"
    export VK_DRIVER_FILES=$scratch/nvidia_icd.json
    say "- Vulkan's driver: $library, which no file of this machine names"
    return
  done
}

# A software device is not a GPU; other tests cover it.
run_vulkan() {
  local devices plugin=$here/lib/plugrad/plugins-v0/libplugrad-backend-vulkan.so
  find_vulkan_driver
  devices=$("$here/bin/plugrad" devices 2>/dev/null | grep '^vulkan:0' || true)
  if [ -z "$devices" ] || grep -q '(software)' <<<"$devices"; then
    say "- left out: Vulkan, for which this machine has no driver of a GPU"
    "$here/bin/plugrad" backends --verbose 2>&1 | sed -n "s|$here/||; /backend-vulkan/,/^[^ ]/p" >>"$report"
    return
  fi
  say "- on Vulkan: $(sed 's/^vulkan:0 *//; s/  .*//' <<<"$devices")"
  lines=3 step "conformance on Vulkan" "$here/bin/plugrad-conform" --require-tier0 --jobs 8 "$plugin"
  local units=(--only "op.MATMUL,op.MATMUL_ADD" --dtype f16 --option cooperative=1 "$plugin")
  if "$here/bin/plugrad-conform" "${units[@]}" 2>&1 | grep -q 'offers no cooperative matrices'; then
    say "- left out: cooperative matrices of f16 with sums of f32, which the driver does not offer"
  else
    lines=3 step "conformance on Vulkan with cooperative matrices" "$here/bin/plugrad-conform" "${units[@]}"
  fi
  step "moons on Vulkan" "$here/bin/plugrad" train --data moons --device vulkan:0 --out "$scratch/moons-vulkan"
}

run_sanitize() {
  local sanitizer op tool plugin=$here/lib/plugrad/plugins-v0/libplugrad-backend-cuda.so
  for sanitizer in compute-sanitizer "${CUDA_HOME:-/nowhere}/bin/compute-sanitizer" /usr/local/cuda/bin/compute-sanitizer; do
    if command -v "$sanitizer" >/dev/null; then break; fi
  done
  if ! command -v "$sanitizer" >/dev/null; then
    say "- FAILED: no compute-sanitizer in PATH, CUDA_HOME or /usr/local/cuda; CUDA's toolkit contains it"
    failed=1
    return
  fi
  # Kernels that share memory between threads come first: the time does not suffice for every case under every tool.
  for tool in memcheck racecheck synccheck initcheck; do
    for op in SUM ARGMAX MATMUL ATTENTION CONVOLUTION LOG_SOFTMAX CROSS_ENTROPY LAYER_NORM BATCH_NORM CUMSUM TOPK ARGSORT \
      SCATTER_ADD GATHER NORMAL; do
      lines=2 start "$tool $op" "$sanitizer" --tool "$tool" --error-exitcode 1 \
        "$here/bin/plugrad-conform" --in-process --only "$op" --dtype f32 "$plugin"
    done
  done
  export PLUGRAD_TEST_DEVICE=cuda
  for op in ADD WHERE CAST COPY ADAM_STEP EXP MAX_POOL QUANTIZED_MATMUL stream. memory. fusion. list.; do
    lines=2 start "memcheck $op" "$sanitizer" --tool memcheck --error-exitcode 1 \
      "$here/bin/plugrad-conform" --in-process --only "$op" "$plugin"
  done
  finish
}

# Prints plugrad's figures beside PyTorch's, joined by name.
compare_rates() {
  say ""
  say "| | plugrad | PyTorch eager | ratio | |"
  say "|---|---|---|---|---|"
  awk -F'\t' 'FILENAME == ARGV[1] { peer[$1] = $2; next }
    { known = $1 in peer
      ratio = known ? sprintf("%.2f", $2 / peer[$1]) : "-"
      printf "| %s | %s | %s | %s | %s |\n", $1, $2, known ? peer[$1] : "-", ratio, $3 }' \
    "$scratch/torch" "$scratch/ours" | tee -a "$report"
  say ""
}

run_bench() {
  : >"$scratch/torch"
  lines=20 step "floor of CUDA itself" "$here/bin/bench_cuda_floor"
  step "rates" bash -c "PLUGRAD_CUDA_OPTIONS=graphs=0 '$here/bin/bench_rates' cuda:0 >'$scratch/ours'"
  step "rates with TF32" bash -c "PLUGRAD_CUDA_OPTIONS=tf32=1 '$here/bin/bench_rates' cuda:0 tf32 >>'$scratch/ours'"
  step "rates with graphs" bash -c "'$here/bin/bench_rates' cuda:0 graphs >>'$scratch/ours'"
  lines=10 step "small steps, eager and as graphs" "$here/bin/bench_compiled" cuda:0
  PLUGRAD_CUDA_OPTIONS=graphs=0 lines=10 step "small steps without graphs" "$here/bin/bench_compiled" cuda:0
  if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
    step "rates of PyTorch $(python3 -c 'import torch; print(torch.__version__)')" \
      bash -c "python3 '$here/rates_torch.py' >'$scratch/torch'"
  else
    say "- left out: PyTorch; python3 has no torch that finds the GPU"
  fi
  compare_rates
  lines=80 step "crossover" "$here/bin/bench_crossover" --device cuda:0 --seconds 0.05
}

run() {
  case "${1:-}" in quick | sanitize | bench) ;; *) usage ;; esac
  if [ -e "$here/programs.tar.gz" ] && [ ! -x "$here/bin/plugrad" ]; then tar -C "$here" -xzf "$here/programs.tar.gz"; fi
  if [ ! -x "$here/bin/plugrad" ]; then
    echo "gpu.sh: run needs a pack: gpu.sh pack FOLDER, then FOLDER/gpu.sh run $1" >&2
    exit 2
  fi
  export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  deadline=$(($(date +%s) + seconds)) failed=0
  demand_gpu
  scratch=$(mktemp -d) steps=0 processors=$(nproc)
  trap 'rm -rf "$scratch"' EXIT
  export XDG_CACHE_HOME=$scratch/cache  # what was compiled before is not used
  find_cublas
  head_of_report "$1"
  "run_$1"
  echo "the report: $report"
  exit "$failed"
}

case "${1:-}" in
  pack) shift; pack "$@" ;;
  run) shift; run "$@" ;;
  *) usage ;;
esac
