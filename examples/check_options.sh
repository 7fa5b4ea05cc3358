#!/usr/bin/env bash
# check_options.sh PROGRAM…: each says which option was probably meant, and has a help that fits.
set -uo pipefail
failed=0
complain() {
  echo "$*"
  failed=1
}
for program in "$@"; do
  output=$("$program" --epoch 3 2>&1) && rc=0 || rc=$?
  [[ $rc -eq 2 && $output == *"unknown option --epoch. Did you mean --epochs? See: $program --help"* ]] ||
    complain "$program --epoch 3: expected exit code 2 and what was meant, got $rc and: $output"
  help=$("$program" --help) || complain "$program --help failed"
  [[ $help == *"  --epochs N "* && -z $(awk 'length($0) > 80 && !/^Usage/' <<<"$help") ]] ||
    complain "$program --help: expected lines of at most 80 columns, got: $help"
done
exit "$failed"
