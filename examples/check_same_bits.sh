#!/usr/bin/env bash
# check_same_bits.sh ARGOSY PROGRAM DATA: the program prints the same figures and the same hash of its weights on one,
# two and three processes.
set -euo pipefail
argosy=$1 program=$2 data=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
for processes in 1 2 3; do
  "$argosy" launch --nproc_per_node $processes --log_dir logs$processes "$program" "$data" 2>errors.txt |
    sed 's/^\[rank 0\] //' | grep -E '^(epoch|weights) ' >"$processes.txt" || { cat errors.txt >&2; exit 1; }
done
[[ $(wc -l <1.txt) == 3 ]] || { echo "expected two epochs and a hash, got:" >&2; cat 1.txt >&2; exit 1; }
for processes in 2 3; do
  diff 1.txt $processes.txt || { echo "$processes processes came to other figures than one" >&2; exit 1; }
done
cat 1.txt
