#!/usr/bin/env bash
# site/look.sh SITE FOLDER [PAGE…]: pictures of the site's pages as a desktop and as a phone show them, to be looked at.
# Fails for a page that is wider than the phone. Needs chromium-headless-shell (scripts/install_deps.sh browser).
set -euo pipefail
site=$(realpath "$1") out=$2
shift 2
pages=("$@")
[[ ${#pages[@]} -gt 0 ]] || pages=(index.html tutorial/1_one_process.html guides/launch.html reference/api/data.html
  reference/commands/train.html compare.html benchmarks.html 'search.html?q=virtual+ranks')
mkdir -p "$out"
for page in "${pages[@]}"; do
  name=${page//[\/?=+]/_}
  for size in 1280,900 390,844; do
    chromium-headless-shell --no-sandbox --disable-gpu --hide-scrollbars --allow-file-access-from-files \
      --virtual-time-budget=5000 --window-size="$size" --screenshot="$out/${name%.html}-${size%,*}.png" \
      "file://$site/$page" >/dev/null 2>&1
  done
done
