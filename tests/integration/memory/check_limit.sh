#!/usr/bin/env bash
# check_limit.sh ARGOSY PROGRAM: a model of three times the memory that a cgroup allows a process
# trains on four processes, to the bits of a training without limit; whole, it does not live there. They resume within
# the limit what whole models have saved. On eight a save fits, too, and a resume from it.
set -euo pipefail
argosy=$1 program=$2

controller=/sys/fs/cgroup/memory
[ -e "$controller/memory.limit_in_bytes" ] || controller=/sys/fs/cgroup
probe=$controller/argosy-probe-$$
if ! mkdir "$probe" 2>/dev/null; then
  echo "skipped: cannot make a cgroup in $controller"
  exit 77
fi
if [ ! -w "$probe/memory.limit_in_bytes" ] && [ ! -w "$probe/memory.max" ]; then
  rmdir "$probe"
  echo "skipped: no memory controller in $controller"
  exit 77
fi
rmdir "$probe"
# Not in /tmp, whose files may be memory, which would count.
scratch=$(mktemp -d "$PWD/limit-XXXXXX")
base=$controller/argosy-check-$$
mkdir "$base"
[ ! -e "$base/cgroup.subtree_control" ] || echo +memory >"$base/cgroup.subtree_control"
clean() {
  find "$base" -mindepth 1 -maxdepth 1 -type d -exec rmdir {} + || true
  rmdir "$base" || true
  rm -rf "$scratch"
}
trap clean EXIT

limit=$((256 << 20))
model=gpt:vocab_size=64,layers=114,width=192,heads=3,context=8
run() { # NAME RANKS BYTES sharded|whole [CHECKPOINTS]
  "$argosy" launch --nproc_per_node "$2" --log_dir "$scratch/$1.logs" \
    "$program" "$base" "$3" "$model" "${@:4}" >"$scratch/$1" 2>&1
}
trains() { # the same
  run "$@" || { cat "$scratch/$1"; exit 1; }
}
# expect_losses NAME STEPS OF: the last losses of OF.
expect_losses() {
  diff <(grep -o 'loss .*' "$scratch/$3" | tail -n "$2") <(grep -o 'loss .*' "$scratch/$1")
  [ "$(grep -c loss "$scratch/$1")" = "$2" ] || { echo "$1: $2 losses were expected"; exit 1; }
}

trains limited 4 "$limit" sharded
grep -h model "$scratch/limited"
needs=$(sed -n 's/.*model \([0-9]*\) bytes.*/\1/p' "$scratch/limited")
[ "$needs" -ge $((3 * limit)) ] || { echo "the model is too small: $needs bytes"; exit 1; }
trains whole 4 0 whole "$scratch/of-whole"
expect_losses limited 3 whole
trains moved 4 "$limit" sharded "$scratch/of-whole"
expect_losses moved 2 whole
grep -h model "$scratch/moved"

# On eight, for a save first copies what the process has: weights and state, 12 of its 16 bytes for each parameter.
trains saved 8 "$limit" sharded "$scratch/parts"
[ -e "$scratch/parts/step-000000001/optimizer-00008-of-00008.safetensors" ] ||
  { echo "the processes did not save a part each"; exit 1; }
trains resumed 8 "$limit" sharded "$scratch/parts"
expect_losses resumed 2 saved # the second needs the optimizer's state

if run alone 1 "$limit" whole; then
  echo "a process trained the whole model within the limit:"
  cat "$scratch/alone"
  exit 1
fi
grep -h SIGKILL "$scratch/alone" || { cat "$scratch/alone"; exit 1; }
