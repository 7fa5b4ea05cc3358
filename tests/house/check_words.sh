#!/usr/bin/env bash
# check_words.sh ROOT: code, pages and messages have libtorch's spelling: color, normalize, gray.
set -euo pipefail
cd "$1"
files=$(find . -type f -regex '.*\.\(h\|cpp\|md\|sh\|py\|js\|css\|cmake\|yml\|yaml\)' -not -path './build/*' -not -path './.*/*' \
  -not -path './tests/house/*' -not -path './benchmarks/results/*')
[[ -n $files ]] || { echo "found no files in $1"; exit 1; }
# awk and not grep, whose exit code says "nothing found" and not whether it read all.
found=$(xargs -d '\n' awk 'tolower($0) ~ /colour|normalis|(^|[^a-z0-9_])grey/ { print FILENAME ":" FNR ":" $0 }' <<<"$files" | sort)
[[ -z $found ]] || { echo "$found"; echo "expected color, normalize, gray"; exit 1; }
