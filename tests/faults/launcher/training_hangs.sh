#!/usr/bin/env bash
# training_hangs.sh ARGOSY FASHION_MNIST: one of two ranks of a training program is stopped by a signal; the
# launcher sees that, ends it, and says which operation of the library it began last.
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

kill -STOP "$rank"
wait_for 30 grep -q 'is stopped by SIGSTOP' err || fail "expected the launcher to see that rank 1 is stopped"
wait "$launcher"
code=$?
launcher=
[[ $code == 137 ]] || fail "expected exit code 137 (SIGKILL), got $code"
grep -qE '\[launch\] rank 1 \(pid [0-9]+\) was stopped by SIGSTOP, did not answer for [0-9.]+ s \(last: [a-z_]+ \(seq [0-9]+\) of [a-z]+\) and was ended by SIGKILL' err ||
  fail "expected the report to name rank 1 and its last operation"
