#!/usr/bin/env bash
# check_links.sh FOLDER: what the pages (*.md) under it link to is there: a file or folder, and the heading or
# anchor in a page. FOLDER is the source tree, or where `make install` puts the documentation.
set -euo pipefail
cd "$1"
broken=0 links=0
# anchors PAGE: of its headings, as forges make them, and those that stand in it.
anchors() {
  sed 's/<a id="/\n&/g' "$1" | sed -nE 's/^<a id="([^"]+)".*/\1/p'
  sed -nE 's/^#+ //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^[:alnum:] _-]//g; s/ /-/g'
}
while IFS= read -r line; do
  page=${line%%:*}
  link=${line#*:}
  link=${link#](}
  target=${link%)}
  anchor=
  [[ $target != *#* ]] || anchor=${target#*#}
  target=${target%%#*}
  links=$((links + 1))
  [[ -z $target || -e $(dirname "$page")/$target ]] || { echo "$page links to $target, which is not there"; broken=1; }
  file=$page
  [[ -z $target ]] || file=$(dirname "$page")/$target
  [[ -z $anchor || ! -f $file || $'\n'$(anchors "$file")$'\n' == *$'\n'"$anchor"$'\n'* ]] ||
    { echo "$page links to $file#$anchor, and that page has no such heading"; broken=1; }
done < <(find . -name '*.md' -not -path './build/*' -not -path './.*/*' -print0 |
  xargs -0 grep -HoE '\]\([^)[:space:]]+\)' | grep -vE '\]\((https?|mailto):')
[[ $links -gt 20 ]] || { echo "found only $links links"; broken=1; }
exit "$broken"
