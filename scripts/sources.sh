#!/usr/bin/env bash
# The C++ files of the project, one per line.
set -euo pipefail
cd "$(dirname "$0")/.."
if git rev-parse --git-dir >/dev/null 2>&1; then
  git ls-files -co --exclude-standard -- '*.h' '*.cpp' | while read -r f; do [[ -f $f ]] && echo "$f"; done
else
  find argosy apps examples tests benchmarks \( -name '*.h' -o -name '*.cpp' \) | sort
fi
