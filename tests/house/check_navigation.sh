#!/usr/bin/env bash
# check_navigation.sh ROOT: each guide and each page of the reference stands in site/navigation.txt, and so on the site.
set -euo pipefail
cd "$1"
lost=0 pages=0
for page in docs/guides/*.md docs/reference/*.md; do
  [[ -f $page ]] || continue
  pages=$((pages + 1))
  name=${page#docs/}
  grep -qxF "${name%.md}" site/navigation.txt || { echo "$page: expected the line '${name%.md}' in site/navigation.txt"; lost=1; }
done
[[ $pages -gt 0 ]] || { echo "no pages under docs/guides"; lost=1; }
exit "$lost"
