#!/usr/bin/env bash
# check_words.sh ROOT: code, pages and messages have libtorch's spelling: color, normalize, gray.
set -euo pipefail
cd "$1"
found=$(find . -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.md' -o -name '*.sh' \) -not -path './build/*' \
  -not -path './.*/*' -not -path './tests/house/*' -not -path './benchmarks/results/*' -exec grep -nHiE 'colour|normalis|\bgrey' {} + | sort) || true
[[ -z $found ]] || { echo "$found"; echo "expected color, normalize, gray"; exit 1; }
