#!/usr/bin/env bash
# check_engine_cuda.sh ENGINE_CUDA: only a folder whose libraries find all that they need counts as there.
set -uo pipefail
script=$1 scratch=$(mktemp -d) failed=0
trap 'rm -rf "$scratch"' EXIT
expect() { # CODE WORDS
  local output code
  output=$("$script" 1.0 "$scratch/engine" 2>&1)
  code=$?
  [[ $code = "$1" && $output == *"$2"* ]] || { echo "expected code $1 and \"$2\", got $code and: $output"; failed=1; }
}
mkdir -p "$scratch/engine/torch/lib" "$scratch/engine/torch-1.0.dist-info"
expect 1 "not complete"
echo "no library" > "$scratch/engine/torch/lib/libtorch_cuda.so"
expect 1 "not complete"
cp "$(type -P true)" "$scratch/engine/torch/lib/libtorch_cuda.so"
expect 0 "is there"
# A run that fails can be repeated: it leaves nothing, and what a killed one left is no obstacle.
for _ in 1 2; do
  mkdir -p "$scratch/other.part/pip"
  output=$("$script" "no version" "$scratch/other" 2>&1)
  [[ $output == *"could not install torch no version" ]] || { echo "another error: $output"; failed=1; }
  [[ ! -e $scratch/other && ! -e $scratch/other.part ]] || { echo "left behind: $(ls "$scratch")"; failed=1; }
done
exit $failed
