#!/usr/bin/env bash
# check_refused.sh SOURCE COMPILER [FLAGS…]: the compiler refuses the line below each "expect:" of the source, by a
# static assertion that begins with its sentence.
set -uo pipefail
source=$1
shift
if said=$("$@" -fsyntax-only -w "$source" 2>&1); then
  echo "expected $source not to compile"
  exit 1
fi
missing=0 expected=0
while IFS=: read -r line sentence; do
  expected=$((expected + 1))
  # GCC first names the line from which it came to the template in which the assertion stands.
  awk -v place="$source:$((line + 1)):" -v words="static assertion failed: $sentence" '
    index($0, place) { here = 1 }
    index($0, "required from here") && !index($0, place) { here = 0 }
    here && index($0, words) { found = 1 }
    END { exit !found }' <<<"$said" || {
    echo "$source:$((line + 1)): expected the compiler to say: $sentence"
    missing=1
  }
done < <(sed -n '\#^ *// expect: #{=;s#^ *// expect: ##p;}' "$source" | paste -d: - -)
[[ $expected -gt 0 ]] || { echo "$source expects nothing"; exit 1; }
[[ $missing -eq 0 ]] || { grep -E 'error:|required from here' <<<"$said" | head -n 40; exit 1; }
