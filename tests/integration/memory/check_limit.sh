#!/usr/bin/env bash
# check_limit.sh ARGOSY PROGRAM: a model of three times the memory that a cgroup allows a process
# trains on four processes, to the bits of a training without limit; whole, it does not live there.
set -euo pipefail
argosy=$1 program=$2
scratch=$(mktemp -d)

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
run() { # NAME RANKS BYTES sharded|whole
  "$argosy" launch --nproc_per_node "$2" --log_dir "$scratch/$1.logs" \
    "$program" "$base" "$3" "$model" "$4" >"$scratch/$1" 2>&1
}

run limited 4 "$limit" sharded || { cat "$scratch/limited"; exit 1; }
grep -h model "$scratch/limited"
needs=$(sed -n 's/.*model \([0-9]*\) bytes.*/\1/p' "$scratch/limited")
[ "$needs" -ge $((3 * limit)) ] || { echo "the model is too small: $needs bytes"; exit 1; }
run whole 4 0 whole || { cat "$scratch/whole"; exit 1; }
diff <(grep -o 'loss .*' "$scratch/whole") <(grep -o 'loss .*' "$scratch/limited")
[ "$(grep -c loss "$scratch/limited")" = 3 ] || { echo "three losses were expected"; exit 1; }

if run alone 1 "$limit" whole; then
  echo "a process trained the whole model within the limit:"
  cat "$scratch/alone"
  exit 1
fi
grep -h SIGKILL "$scratch/alone" || { cat "$scratch/alone"; exit 1; }
