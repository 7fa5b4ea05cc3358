#!/usr/bin/env bash
# quiet.sh WORDS LOG COMMAND…: runs a long command with its output in LOG; says what runs and how
# long it took; on failure shows the end of LOG and returns the command's exit code.
set -uo pipefail
words=$1 log=$2
shift 2
mkdir -p "$(dirname "$log")"
echo "argosy: $words"
SECONDS=0
"$@" >"$log" 2>&1 && exit 0
rc=$?
grep -E -A5 'error|Error|FAILED' "$log" | head -n 20 >&2
tail -n 5 "$log" >&2
echo "argosy: failed after $SECONDS s with exit code $rc: $* (all of its output: $log)" >&2
exit "$rc"
