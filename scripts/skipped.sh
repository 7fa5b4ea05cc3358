#!/usr/bin/env bash
# skipped.sh BUILD: says, after a run of ctest, how many tests were skipped and for which reason.
set -euo pipefail
log=$1/Testing/Temporary/LastTest.log
[[ -r $log ]] || exit 0
# A test of googletest says "FILE:LINE: Skipped" and the reason in the next line; a script says "skipped: REASON".
# Several cases of one program count as one test, as ctest counts them.
awk '
  / Test: / && /^[0-9]+\/[0-9]+ Test: / { reason = ""; told = 0 }
  told { if (reason == "") reason = $0; told = 0 }
  /: Skipped$/ { told = 1 }
  /^skipped: / && reason == "" { reason = substr($0, 10) }
  / time elapsed: / && reason != "" {
    sub(/ \(.*/, "", reason); sub(/: .*/, "", reason)
    count[reason]++; all++; reason = ""
  }
  END {
    if (!all) exit
    printf "Skipped: %d tests, because\n", all
    for (r in count) printf "%5d  %s\n", count[r], r | "sort -k1,1nr -k2"
  }' "$log"
