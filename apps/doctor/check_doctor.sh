#!/usr/bin/env bash
# check_doctor.sh ARGOSY ARGOSY_TORCH: the doctor finds this machine well, and what is made wrong.
set -uo pipefail
argosy=$1
failed=0
# expect CODE WORDS COMMAND…: runs it, compares the exit code, looks for the words in its output.
expect() {
  local code=$1 words=$2 output rc
  shift 2
  output=$("$@" 2>&1) && rc=0 || rc=$?
  if [[ $rc -ne $code || $output != *"$words"* ]]; then
    echo "$*: expected exit code $code and \"$words\", got $rc and: $output"
    failed=1
  fi
}
expect 0 "Training works here" "$argosy" doctor
expect 0 "2 processes, 30 steps in" "$argosy" doctor
expect 0 '"ok": true' "$argosy" doctor --json --no_training
expect 0 "--no_training" "$argosy" doctor --help
expect 2 "argosy doctor --help" "$argosy" doctor --traning
expect 1 "/no/such is not there" env TMPDIR=/no/such "$argosy" doctor --no_training
expect 0 "the launcher needs about 10 for each rank" bash -c "ulimit -n 256; '$argosy' doctor --no_training"
expect 0 "all 3 ranks reach each other" "$argosy" launch --nproc_per_node 3 --log_dir "" "$argosy" doctor --nodes
if unshare -n true 2>/dev/null; then
  expect 1 "the loopback interface is down" unshare -n "$argosy" launch --nproc_per_node 2 --log_dir "" "$(dirname "$argosy")/argosy-torch" doctor
else
  echo "not tried: a loopback that is down, for unshare -n is not allowed here"
fi

# A training that fails is told with its last words: the engine beside this copy is another program.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp "$argosy" "$scratch/argosy"
expect 0 "not tried: there is no $scratch/argosy-torch" "$scratch/argosy" doctor
printf '#!/bin/sh\necho no such instruction; exit 5\n' >"$scratch/argosy-torch"
chmod +x "$scratch/argosy-torch"
expect 1 "ended with code 5" "$scratch/argosy" doctor
exit "$failed"
