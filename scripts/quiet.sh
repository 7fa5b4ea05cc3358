#!/usr/bin/env bash
# quiet.sh WORDS LOG COMMAND…: runs a long command with its output in LOG; says what runs and how far it
# is; on failure shows what went wrong and returns the command's exit code.
set -uo pipefail
words=$1 log=$2
shift 2
mkdir -p "$(dirname "$log")" 2>/dev/null
if ! : 2>/dev/null >"$log"; then
  echo "argosy: cannot write $PWD/$log: is this clone another user's? Use one of your own" >&2
  exit 1
fi
echo "argosy: $words"
SECONDS=0 told=0
"$@" >"$log" 2>&1 &
command=$!
trap 'kill "$command" 2>/dev/null' INT TERM

step() { grep -oE '^\[[0-9]+/[0-9]+\]' "$log" | tail -n 1; }
if [[ -t 1 && ${TERM:-dumb} != dumb ]]; then
  while kill -0 "$command" 2>/dev/null; do
    printf '\r  %s %d s \033[K' "$(step)" "$SECONDS"
    sleep 0.5
  done
  printf '\r\033[K'
else
  while kill -0 "$command" 2>/dev/null; do
    sleep 1
    if ((SECONDS >= told + 30)); then
      told=$((SECONDS / 30 * 30))
      echo "  $(step) $SECONDS s"
    fi
  done
fi
wait "$command" && exit 0
rc=$?
{ grep -E -A8 'error|Error|FAILED' "$log" || tail -n 20 "$log"; } | head -n 20 >&2
echo "argosy: failed after $SECONDS s with exit code $rc: $* (all of its output: $log)" >&2
exit "$rc"
