#!/usr/bin/env bash
# What needs a GPU: the device tests on CUDA, and steps of training beside PyTorch's. ARCHIVE is pack.sh's.
#
#     tests/gpu/run.sh ARCHIVE OUT [RUNS]        # OUT gets steps.jsonl: each figure of each of RUNS (5) interleaved runs
set -uo pipefail
[ $# -ge 2 ] || { sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2; }
folder=$(mktemp -d) out=$(realpath -m "$2") runs=${3:-5} failed=0
trap 'rm -rf "$folder"' EXIT
tar -C "$folder" -xJf "$1" || exit 1
cd "$(dirname "$0")/../.."
torch=$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))') || exit 1
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || exit 1
ours() { LD_LIBRARY_PATH=$torch/lib:$folder/lib "$@"; }
export PATH=$folder/bin:$PATH OMP_NUM_THREADS=1

mkdir -p "$out"
for test in devices_test devices_processes_test; do
  ours "$folder/bin/$test" --gtest_filter='Cuda/*' 2>&1 | tee "$out/$test.log"
  # Where CUDA does not answer, all cases skip themselves, and the program ends well.
  [ "${PIPESTATUS[0]}" = 0 ] && grep -q '^\[  PASSED  \] [1-9]' "$out/$test.log" || failed=1
done

step() { # variant, program and its options
  local variant=$1
  shift
  "$@" --device cuda:0 --steps 100 --warmup 30 |
    sed -n "s/^{/{\"variant\": \"$variant\", \"round\": $round, /p" >> "$out/steps.jsonl"
  [ "${PIPESTATUS[0]}" = 0 ] || failed=1
}
peer="python3 -m torch.distributed.run --standalone --nproc_per_node 1 benchmarks/peers/train_step.py"
: > "$out/steps.jsonl"
for round in $(seq "$runs"); do
  for model in mnist_cnn resnet18; do
    step argosy ours bench_train_step $model
    step "argosy without DDP" ours bench_train_step $model --independent
    step pytorch $peer $model
    step "pytorch tuned" $peer $model --tuned
  done
done
python3 tests/gpu/table.py "$out/steps.jsonl" || failed=1
exit $failed
