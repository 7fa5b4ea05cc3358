#!/usr/bin/env bash
# check_servers.sh ARGOSY PROGRAM: two servers and two workers learn who clicks what, and come to the same figures when
# a server is killed in the middle.
set -euo pipefail
argosy=$1 program=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

start() { # NAME: the launcher, in the background
  "$argosy" launch --run_mode ps --server_num 2 --worker_num 2 --log_dir "$1" "$program" >"$1.txt" 2>"$1.err" &
  launcher=$!
}
finish() { # NAME
  wait "$launcher" || { cat "$1.txt" "$1.err" >&2; exit 1; }
  sed -n 's/^\[worker 0\] //p' "$1.txt" >"$1.figures"
}
start calm
finish calm

start disturbed
for ((i = 0; i < 600; i++)); do
  ! grep -qs '^\[worker 0\] step 200' disturbed.txt || break
  sleep 0.05
done
for process in /proc/[0-9]*; do
  # Of this job, and a server. A process may end while it is looked at.
  variables=$({ tr '\0' '\n' <"$process/environ"; } 2>/dev/null) || continue
  if grep -qx "ARGOSY_LOG_DIR=$scratch/disturbed/.*" <<<"$variables" &&
    grep -qx 'TRAINING_ROLE=PSERVER' <<<"$variables"; then
    kill -9 "${process#/proc/}"
    break
  fi
done
finish disturbed
grep -q 'the others go on without it' disturbed.txt disturbed.err || { echo "no server died" >&2; exit 1; }
diff calm.figures disturbed.figures || { echo "the death of a server changed the result" >&2; exit 1; }

auc=$(sed -n 's/^AUC \([0-9.]*\),.*/\1/p' calm.figures)
awk -v auc="$auc" 'BEGIN { exit !(auc > 0.75 && auc < 0.84) }' || { echo "AUC $auc, expected 0.75 to 0.84" >&2; exit 1; }
cat calm.figures
