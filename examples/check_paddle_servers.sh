#!/usr/bin/env bash
# check_paddle_servers.sh ARGOSY PROGRAM: two servers and two workers by fleet's names learn; a server that is killed
# changes no figure; what they save is where another run begins.
set -euo pipefail
argosy=$1 program=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

run() { # NAME [ARGUMENT]…
  local name=$1
  shift
  "$argosy" launch --server_num 2 --worker_num 2 --log_dir "$name" "$program" "$@" >"$name.txt" 2>"$name.err" ||
    { cat "$name.txt" "$name.err" >&2; exit 1; }
  sed -n 's/^\[worker 0\] //p' "$name.txt" >"$name.figures"
}
loss() { sed -n "s/^step $2: loss //p" "$1.figures"; }

run calm --save saved
awk -v first="$(loss calm 1)" -v last="$(loss calm 300)" 'BEGIN { exit !(first > 0.25 && last < 0.05) }' ||
  { cat calm.figures; echo "nothing was learned" >&2; exit 1; }
grep -qx 'rows: 10000 rows, [0-9]* bytes' calm.figures || { cat calm.figures; echo "no rows" >&2; exit 1; }
"$argosy" checkpoint verify saved >/dev/null

run on --load saved/step-000000300
awk -v first="$(loss on 1)" -v last="$(loss calm 300)" 'BEGIN { exit !(first < 2 * last + 0.01) }' ||
  { cat calm.figures on.figures; echo "it did not begin where the other one ended" >&2; exit 1; }

run disturbed & # and a server is killed in the middle
job=$!
for ((i = 0; i < 600; i++)); do
  ! grep -qs 'step 100' disturbed.txt || break
  sleep 0.02
done
for process in /proc/[0-9]*; do
  variables=$({ tr '\0' '\n' <"$process/environ"; } 2>/dev/null) || continue
  if grep -qx "ARGOSY_LOG_DIR=$scratch/disturbed/.*" <<<"$variables" && grep -qx "TRAINING_ROLE=PSERVER" <<<"$variables" &&
    [[ $(readlink "$process/exe") == "$(readlink -f "$program")" ]]; then
    kill -9 "${process#/proc/}"
    break
  fi
done
wait "$job"
grep -q 'the others go on without it' disturbed.err || { echo "no server died" >&2; exit 1; }
diff calm.figures disturbed.figures || { echo "the death of a server changed the result" >&2; exit 1; }

"$program" 2>alone.err && { echo "it ran without servers" >&2; exit 1; }
grep -q 'PADDLE_PSERVERS_IP_PORT_LIST is not set' alone.err || { cat alone.err >&2; exit 1; }
cat calm.figures
