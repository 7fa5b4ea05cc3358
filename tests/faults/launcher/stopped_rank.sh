#!/usr/bin/env bash
# stopped_rank.sh ARGOSY PROGRAM: rank 1 of 3 is stopped by SIGSTOP between two operations and inside of one.
# The launcher ends the job in time and names rank 1 as the first cause, stopped; no rank says that it died.
# Without --heartbeat_timeout the job ends when the store has lost the silent rank, after 10 to 15 s.
set -uo pipefail
argosy=$1 program=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# CASE SECONDS OPTIONS...: says nothing where all is well.
ends_with_the_stopped_rank() (
  what=$1 most=$2 begin=$SECONDS said=$scratch/${1//[ ,]/-}
  shift 2
  failed=0
  complain() {
    echo "$what: $1"
    cat "$said"
    failed=1
  }
  timeout 60 "$argosy" launch --nproc_per_node 3 --log_dir "" --env OMP_NUM_THREADS=1 "$@" "$program" >"$said.out" 2>"$said"
  code=$? took=$((SECONDS - begin))
  first='^\[launch\] rank 1 \(pid [0-9]+\) was stopped by SIGSTOP, did not answer.* after [0-9.]+ s; '
  [[ $code == 137 ]] || complain "expected exit code 137 (SIGKILL), got $code"
  ((took <= most)) || complain "expected the end within $most s, got $took s"
  grep -qE "$first" "$said" || complain "expected rank 1, stopped by SIGSTOP, as the first cause"
  for rank in 0 2; do
    grep -E "rank $rank/3.*rank 1 does not answer: it is stopped by SIGSTOP" "$said" >/dev/null ||
      complain "expected rank $rank to say that rank 1 is stopped"
  done
  ! grep -w died "$said" >/dev/null || complain "expected nobody to say that a rank died"
  exit "$failed"
)

# They wait most of the time, so that all run at once. Eighteen processes start, which takes two cores up to eight
# seconds; without the option the end would come after fourteen and more.
cases=()
for backend in shm gloo; do
  for place in between inside; do
    ends_with_the_stopped_rank "$place, $backend" 13 --heartbeat_timeout 2 \
      --env "STOP=$place" --env "ARGOSY_BACKEND=$backend" &
    cases+=($!)
  done
done
ends_with_the_stopped_rank "inside, nobody watches" 30 --env STOP=inside --env ARGOSY_BACKEND=gloo &
cases+=($!)
# A child of a rank that works on is no cause: rank 2, which ends with exit code 3, is.
of_a_working_rank() (
  said=$scratch/child
  timeout 60 "$argosy" launch --nproc_per_node 3 --log_dir "" --env OMP_NUM_THREADS=1 --env STOP=child "$program" >"$said" 2>&1
  code=$?
  if [[ $code != 3 ]] || grep -q "stopped by SIGSTOP" "$said" || ! grep -qE '^\[launch\] rank 2 \(pid [0-9]+\) exited with code 3' "$said"; then
    echo "a stopped child: expected exit code 3 of rank 2, got $code"
    cat "$said"
    exit 1
  fi
)
of_a_working_rank &
cases+=($!)
failed=0
for case in "${cases[@]}"; do
  wait "$case" || failed=1
done
exit "$failed"
