#!/usr/bin/env bash
# check_claims.sh PAGE BUILD: every test that the page names below a claim is one of this build's.
set -euo pipefail
page=$1 build=$2
tests=$(ctest --test-dir "$build" -N | sed -nE 's/^ *Test +#[0-9]+: //p')
missing=0 rows=0
while IFS= read -r name; do
  rows=$((rows + 1))
  grep -qE "^${name//./\\.}(\.|$)" <<<"$tests" || { echo "$page: there is no test $name"; missing=1; }
done < <(grep -E '^  (`|by hand)' "$page" | grep -oE '`[a-z][^`]+`' | tr -d '`')
[[ $rows -gt 0 ]] || { echo "$page: found no test"; exit 1; }
exit $missing
