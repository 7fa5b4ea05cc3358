#!/usr/bin/env bash
# check_own_loop.sh ARGOSY PROGRAM DATA: killed after its first checkpoint and started again on two processes, the
# program comes to the weights of an uninterrupted run, bit by bit. DATA: a folder of Fashion-MNIST, of which it takes
# so much that two checkpoints lie in each epoch.
set -euo pipefail
argosy=$1 program=$2 data=$3
scratch=$(mktemp -d)
running=
trap '[[ -z $running ]] || kill -KILL "$running" 2>/dev/null; rm -rf "$scratch"' EXIT
cd "$scratch"
"${BASH_SOURCE[0]%/*}/../tests/data/fewer_pictures.sh" "$data" pictures 26000 2000 # 204 steps an epoch
data=pictures
export OMP_NUM_THREADS=1
fail() {
  echo "$*"
  exit 1
}
run() { # FOLDER OF CHECKPOINTS
  exec "$argosy" launch --nproc_per_node 2 --log_dir "" "$program" "$data" "$1"
}
said() { # FILE: what rank 0 printed of what it came to
  grep -oE '(epoch [0-9]+: accuracy|weights) .*' "$1"
}
(run whole) | tee wholly
run kept >first &
running=$!
for ((turn = 0; turn < 2400; ++turn)); do
  ! compgen -G "kept/step-*" >/dev/null || break
  sleep 0.05
done
kill -KILL "$running"
wait "$running" || true
running=
(run kept) | tee next
grep -qE 'begins at step [1-9]' next || fail "it began anew"
[[ $(said next | wc -l) == 3 ]] || fail "expected two epochs and the weights"
cmp <(said wholly) <(said next) || fail "the resumed training comes to other weights"
