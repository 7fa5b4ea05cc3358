#!/usr/bin/env bash
# killed_rank.sh ARGOSY PROGRAM: rank 3 of 5 kills itself before the others have met, in the middle of their
# collectives and at the end; the launcher names it and no victim, every time.
set -uo pipefail
argosy=$1 program=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
for moment in start middle exit; do
  MOMENT=$moment timeout 60 "$argosy" launch --nproc_per_node 5 --log_dir "" --env OMP_NUM_THREADS=1 "$program" \
    >"$scratch/out" 2>"$scratch/err"
  code=$?
  named=$(grep -cE '^\[launch\] rank [0-9]+ \(pid [0-9]+\) .* after [0-9.]+ s; ' "$scratch/err")
  if [[ $code != 137 || $named != 1 ]] ||
    ! grep -qE '^\[launch\] rank 3 \(pid [0-9]+\) was killed by SIGKILL .* after [0-9.]+ s; ' "$scratch/err"; then
    echo "killed at the $moment: expected exit code 137 and rank 3 named alone, got $code and:"
    cat "$scratch/err"
    failed=1
  fi
done
exit "$failed"
