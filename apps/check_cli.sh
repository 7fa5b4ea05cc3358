#!/usr/bin/env bash
# check_cli.sh ARGOSY: the exit codes and words of the command itself; argosy launch has its own tests.
set -uo pipefail
argosy=$1
failed=0
# expect CODE WORDS ARGUMENTS…: runs it, compares the exit code, looks for the words in its output.
expect() {
  local code=$1 words=$2 output rc
  shift 2
  output=$("$argosy" "$@" 2>&1) && rc=0 || rc=$?
  if [[ $rc -ne $code || $output != *"$words"* ]]; then
    echo "argosy $*: expected exit code $code and \"$words\", got $rc and: $output"
    failed=1
  fi
}
expect 0 "Usage: argosy <command>" --help
expect 0 "Usage: argosy <command>" help
expect 0 "argosy 0." --version
expect 0 "--nproc_per_node" launch --help
expect 2 "Usage: argosy <command>"
expect 2 "Did you mean argosy launch?" lanch
expect 2 "Did you mean argosy --version?" --verison
expect 2 "unknown option --nproc_per_node. A command comes first" --nproc_per_node 2 true
expect 2 "unknown option --nproc_per_nod. Did you mean --nproc_per_node?" launch --nproc_per_nod 2 true

if error=$("$argosy" --help 2>&1 >/dev/full) || [[ $error != *"No space left"* ]]; then
  echo "argosy --help >/dev/full: expected a failure that says why, got: $error"
  failed=1
fi
exit "$failed"
