#!/usr/bin/env bash
# tidy_one.sh DATABASE FILE: clang-tidy on one file; silent when it is content.
set -uo pipefail
extra=()
if grep -A3 -F "$2\"" "$1/compile_commands.json" | grep -q torch; then
  extra=(--extra-arg-before=-includeATen/core/ivalue.h)
fi
if ! out=$(clang-tidy-14 -p "$1" --quiet "${extra[@]}" --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unused-command-line-argument "$2" 2>/dev/null); then
  printf '%s\n' "$out"
  exit 1
fi
