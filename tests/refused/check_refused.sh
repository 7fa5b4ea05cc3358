#!/usr/bin/env bash
# check_refused.sh SOURCE COMPILER [FLAGS…]: the compiler refuses the source, and says each sentence that stands
# behind "expect:" in it.
set -uo pipefail
source=$1
shift
if said=$("$@" -fsyntax-only -w "$source" 2>&1); then
  echo "expected $source not to compile"
  exit 1
fi
missing=0 expected=0
while IFS= read -r sentence; do
  expected=$((expected + 1))
  if ! grep -qF "static assertion failed: $sentence" <<<"$said"; then
    echo "expected the compiler to say: $sentence"
    missing=1
  fi
done < <(sed -n 's#^ *// expect: ##p' "$source")
[[ $expected -gt 0 ]] || { echo "$source expects nothing"; exit 1; }
[[ $missing -eq 0 ]] || { grep "error:" <<<"$said" | head -n 30; exit 1; }
