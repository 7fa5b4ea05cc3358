#!/usr/bin/env bash
# check_links.sh FOLDER: what the pages (*.md) under it link to is there, as a file or folder. FOLDER is
# the source tree, or where `make install` puts the documentation.
set -euo pipefail
cd "$1"
broken=0 links=0
while IFS= read -r line; do
  page=${line%%:*}
  link=${line#*:}
  link=${link#](}
  target=${link%)}
  target=${target%%#*}
  links=$((links + 1))
  [[ -z $target || -e $(dirname "$page")/$target ]] || { echo "$page links to $target, which is not there"; broken=1; }
done < <(find . -name '*.md' -not -path './build/*' -not -path './.*/*' -print0 |
  xargs -0 grep -HoE '\]\([^)[:space:]]+\)' | grep -vE '\]\((https?|mailto):')
[[ $links -gt 20 ]] || { echo "found only $links links"; broken=1; }
exit "$broken"
