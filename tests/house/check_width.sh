#!/usr/bin/env bash
# check_width.sh ROOT: lines of Markdown have at most 120 columns, so that they can be read and compared in a terminal.
# Code blocks are as wide as they are; so are results of benchmarks, which programs write.
set -euo pipefail
export LC_ALL=C.UTF-8
cd "$1"
wide=0 pages=0
while IFS= read -r page; do
  pages=$((pages + 1))
  shown=$(awk '/^ *```/ { code = !code } { print code || /^    / ? "" : $0 }' "$page")
  found=$(grep -nE '.{121,}' <<<"$shown") || continue
  cut -c1-100 <<<"$found" | sed "s#^#$page:#"
  wide=1
done < <(find . -name '*.md' -not -path './build/*' -not -path './benchmarks/results/*' -not -path './tests/house/broken_tree/*' -not -path './.*/*' | sort)
[[ $pages -gt 0 ]] || { echo "found no Markdown in $1"; exit 1; }
[[ $wide -eq 0 ]] || { echo "expected at most 120 columns"; exit 1; }
