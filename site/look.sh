#!/usr/bin/env bash
# site/look.sh SITE FOLDER [PAGE…]: pictures of the site's pages as a desktop and as a phone show them, to be looked at.
# site/look.sh SITE --widths: fails for a page that is wider than a phone, and names it.
# Needs chromium-headless-shell (scripts/install_deps.sh browser).
set -euo pipefail
site=$(realpath "$1") out=$2
probe_js=$(realpath "$(dirname "$0")/probe.js")
shift 2
command -v chromium-headless-shell >/dev/null ||
  { echo "there is no chromium-headless-shell. Run first: scripts/install_deps.sh browser" >&2; exit 1; }
browser() {
  chromium-headless-shell --no-sandbox --disable-gpu --hide-scrollbars --virtual-time-budget=3000 "$@" 2>/dev/null
}
if [[ $out == --widths ]]; then
  wide=0 probe= pages=0
  trap 'rm -f "$probe"' EXIT
  while IFS= read -r page; do
    pages=$((pages + 1))
    probe=${page%.html}.probe.html # beside the page, whose links are relative
    {
      sed 's#</body>.*##; s#^</html>##' "$page"
      printf '<script>%s</script></body></html>\n' "$(cat "$probe_js")"
    } >"$probe"
    said=$(browser --window-size=390,844 --dump-dom "file://$probe" |
      sed -nE 's#.*<title>((wide|fits)[^<]*)</title>.*#\1#p' | head -n 1)
    rm -f "$probe"
    [[ $said == fits ]] || { echo "${page#"$site"/}: expected that it fits a phone of 390 pixels, got: $said"; wide=1; }
  done < <(find "$site" -name '*.html' -not -path '*/benchmarks/results/*' | sort)
  [[ $pages -gt 0 ]] || { echo "found no page in $site"; exit 1; }
  exit $wide
fi
pages=("$@")
[[ ${#pages[@]} -gt 0 ]] || pages=(index.html tutorial/1_one_process.html guides/launch.html reference/api/data.html
  reference/commands/train.html compare.html benchmarks.html 'search.html?q=virtual+ranks')
mkdir -p "$out"
for page in "${pages[@]}"; do
  name=${page//[\/?=+]/_}
  for size in 1280,900 390,844; do
    browser --window-size="$size" --screenshot="$out/${name/.html/}-${size%,*}.png" "file://$site/$page" >/dev/null
  done
done
