#!/usr/bin/env bash
# check_servers.sh ARGOSY PROGRAM: two servers and two workers learn who clicks what, and come to the same figures when
# a server is killed in the middle; when it is started again and the other one is killed after it, with rows on disk; and
# when a worker is killed, the launcher starts all again, and they go on from a checkpoint. An asynchronous run is
# repeated, and goes on when a worker is killed, with it or without; so does one whose workers train by themselves for
# some steps.
set -euo pipefail
argosy=$1 program=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

start() { # NAME [LAUNCHER'S OPTION]… -- [ARGUMENT]…: the launcher, in the background
  local name=$1 options=()
  while shift && [[ $1 != -- ]]; do options+=("$1"); done
  shift
  "$argosy" launch --run_mode ps --server_num 2 --worker_num "${workers:-2}" --log_dir "$name" "${options[@]}" "$program" "$@" \
    >"$name.txt" 2>"$name.err" &
  launcher=$!
}
kill_one() { # NAME ROLE LINE [RANK]: kills a server or a worker of the job when it has printed the line
  for ((i = 0; i < 600; i++)); do
    ! grep -qs "^\[worker 0\] $3" "$1.txt" || break
    sleep 0.05
  done
  for process in /proc/[0-9]*; do
    # A process may end while it is looked at.
    variables=$({ tr '\0' '\n' <"$process/environ"; } 2>/dev/null) || continue
    if grep -qx "ARGOSY_LOG_DIR=$scratch/$1/.*" <<<"$variables" && grep -qx "TRAINING_ROLE=$2" <<<"$variables" &&
      grep -qx "RANK=${4:-.*}" <<<"$variables"; then
      kill -9 "${process#/proc/}"
      return
    fi
  done
}
finish() { # NAME
  wait "$launcher" || { cat "$1.txt" "$1.err" >&2; exit 1; }
  sed -n 's/^\[worker 0\] //p' "$1.txt" >"$1.figures"
}
start calm --
finish calm

# Two launchers, as on two nodes: a server and a worker each.
host() { # NODE
  "$argosy" launch --nnodes 2 --node_rank "$1" --rdzv_endpoint 127.0.0.1:"$port" --server_num 1 --worker_num 1 \
    --log_dir "host$1" "$program" >"host$1.txt" 2>"host$1.err"
}
port=$("$argosy" launch --dry_run true | sed -n 's/.*MASTER_PORT .*:\([0-9]*\).*/\1/p')
host 1 &
second=$!
host 0 || { cat host?.txt host?.err >&2; exit 1; }
wait "$second" || { cat host?.txt host?.err >&2; exit 1; }
grep -q '^\[worker 1\] ' host1.txt && { cat host1.txt; exit 1; } # the second worker prints nothing of its own
diff calm.figures <(sed -n 's/^\[worker 0\] //p' host0.txt) || { echo "two nodes came to another result" >&2; exit 1; }

start disturbed --
kill_one disturbed PSERVER 'step 200'
finish disturbed
grep -q 'the others go on without it' disturbed.txt disturbed.err || { echo "no server died" >&2; exit 1; }
diff calm.figures disturbed.figures || { echo "the death of a server changed the result" >&2; exit 1; }

start replaced --max_restarts 1 -- --spill rows
kill_one replaced PSERVER 'step 200' 0
for ((i = 0; i < 600; i++)); do # until both partitions have two copies again
  [[ $(grep -hs 'has a copy of partition' replaced/*/rank*.log | wc -l) != 2 ]] || break
  sleep 0.02
done
compgen -G 'rows/argosy-rows-*/*.sst' >/dev/null || { ls -R rows; echo "no rows lay on disk" >&2; exit 1; }
kill_one replaced PSERVER 'step 200' 1
finish replaced
[[ -z $(ls -A rows) ]] || { ls -R rows; echo "folders of rows were left" >&2; exit 1; }
[[ $(grep -c 'is started again (1 of 1)' replaced.err) == 2 ]] || { cat replaced.err; echo "no two servers were replaced" >&2; exit 1; }
diff calm.figures replaced.figures || { echo "servers that came back changed the result" >&2; exit 1; }

start restarted --max_restarts 1 -- --checkpoints saved
kill_one restarted TRAINER 'step 400'
finish restarted
grep -q 'restart 1 of 1' restarted.err || { echo "no worker died" >&2; exit 1; }
[[ $(grep -c 'step 200' restarted.figures) == 1 ]] || { echo "it did not go on from a checkpoint" >&2; exit 1; }
diff <(tail -n 4 calm.figures) <(tail -n 4 restarted.figures) ||
  { echo "the restart changed the result" >&2; exit 1; }

for mode in async geo; do
  start "lonely_$mode" --max_restarts 1 -- --mode "$mode"
  kill_one "lonely_$mode" TRAINER 'step 200' 1
  kill_one "lonely_$mode" TRAINER 'step 400' 0
  finish "lonely_$mode"
  [[ $(grep -c 'worker [01]: .*; it is started again (1 of 1)' "lonely_$mode.err") == 2 ]] ||
    { cat "lonely_$mode.err"; echo "no two workers were started again alone" >&2; exit 1; }
  [[ $(grep -c 'step 600' "lonely_$mode.figures") == 1 ]] ||
    { echo "the first worker did not make its steps" >&2; exit 1; }

  start "missed_$mode" -- --mode "$mode"
  kill_one "missed_$mode" TRAINER 'step 200' 1
  finish "missed_$mode"
  grep -q 'worker 1: .*; the others go on without it' "missed_$mode.err" || { echo "no worker was missed" >&2; exit 1; }

  start "recorded_$mode" -- --mode "$mode" --record "order_$mode"
  finish "recorded_$mode"
  start "repeated_$mode" -- --mode "$mode" --replay "order_$mode"
  finish "repeated_$mode"
  # How many rows there are while the other worker still learns is nobody's turn.
  diff <(grep -v rows "recorded_$mode.figures") <(grep -v rows "repeated_$mode.figures") ||
    { echo "the replay came to another result" >&2; exit 1; }
done

workers=1 start geo_calm -- --mode geo
finish geo_calm
workers=1 start geo_disturbed -- --mode geo
kill_one geo_disturbed PSERVER 'step 200'
finish geo_disturbed
grep -q 'the others go on without it' geo_disturbed.txt geo_disturbed.err || { echo "no server died" >&2; exit 1; }
diff geo_calm.figures geo_disturbed.figures || { echo "the death of a server changed the result" >&2; exit 1; }

auc=$(sed -n 's/^AUC \([0-9.]*\),.*/\1/p' calm.figures)
awk -v auc="$auc" 'BEGIN { exit !(auc > 0.75 && auc < 0.84) }' || { echo "AUC $auc, expected 0.75 to 0.84" >&2; exit 1; }
grep AUC recorded_geo.figures
cat calm.figures
