#!/usr/bin/env bash
# tree.sh ARGOSY PROGRAM: NumPy computes the averages of the gradients that the virtual ranks wrote, by the definition
# of the tree alone, and finds the bits that all processes had. PEERS, .venv-peers (make peers) or python3 is a Python
# with NumPy; 77 (skipped) without.
set -u
argosy=$1 program=$2
for python in ${PEERS:+"$PEERS"} "$(dirname "$0")/../../../.venv-peers/bin/python" python3 /usr/bin/python3; do
  "$python" -c 'import numpy' 2>/dev/null && break
done
"$python" -c 'import numpy' 2>/dev/null ||
  { echo "skipped: no Python with numpy: apt-get install python3-numpy"; exit 77; }
. "$(dirname "$0")/places.sh"
failed=0
# at PLACE V A PRECISION
at() {
  rm -rf "$scratch/gradients"
  mkdir "$scratch/gradients"
  launch_at "$1" "$program" --loop wrapper --virtual_ranks "$2" --accumulate "$3" --precision "$4" --updates 2 \
    --write "$scratch/gradients" >"$scratch/out" 2>&1 || { cat "$scratch/out"; failed=1; return; }
  echo "$1, $2 virtual ranks of $3 batches, $4:"
  "$python" "$(dirname "$0")/check_tree.py" "$scratch/gradients" "$2" "$3" || failed=1
}
at shm:1 8 1 f32
at shm:3 8 3 f32
at gloo:2 7 1 f32
at threads:4 6 3 bf16
exit $failed
