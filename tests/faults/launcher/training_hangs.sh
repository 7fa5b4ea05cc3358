#!/usr/bin/env bash
# training_hangs.sh ARGOSY FASHION_MNIST: one of two ranks of a training program stands still; the launcher
# ends it, shows where, and says which operation of the library it began last.
set -uo pipefail
argosy=$1 program=$2
scratch=$(mktemp -d)
launcher=
clean_up() {
  [[ -z $launcher ]] || kill -KILL "$launcher" 2>/dev/null
  rm -rf "$scratch"
}
trap clean_up EXIT
cd "$scratch" || exit 1
"$argosy" launch --nproc_per_node 2 --heartbeat_timeout 2 --log_dir "" "$program" >out 2>err &
launcher=$!

wait_for() { # SECONDS COMMAND...
  local turns=$(($1 * 20))
  shift
  until "$@"; do
    ((turns-- > 0)) || return 1
    sleep 0.05
  done
}
fail() {
  echo "$*"
  cat out err
  exit 1
}
rank_one() {
  for pid in $(pgrep -P "$launcher"); do
    if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx RANK=1; then
      echo "$pid"
    fi
  done
}
wait_for 60 grep -q 'epoch 1/' out || fail "expected the training to begin"
rank=$(rank_one)
[[ -n $rank ]] || fail "no rank 1 among the launcher's children"

# Stopped within an operation it would not be the one to blame: then it goes on a little, and stops again.
for _ in 1 2 3 4 5 6 7 8; do
  kill -STOP "$rank"
  wait_for 6 grep -q 'stood still for' err && break
  kill -CONT "$rank"
  sleep 0.1
done
wait "$launcher"
code=$?
launcher=
[[ $code == 134 ]] || fail "expected exit code 134 (SIGABRT), got $code"
grep -qE '\[launch\] rank 1 \(pid [0-9]+\) stood still for [0-9.]+ s \(last: [a-z_]+ #[0-9]+ of [a-z]+' err ||
  fail "expected the report to name rank 1 and its last operation"
