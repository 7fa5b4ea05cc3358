# For scripts that open run pages, to be sourced: finds a Chromium, or skips. Sets work (removed at the end),
# failed, and what follows.
browser=${BROWSER:-}
for name in chromium-headless-shell chromium google-chrome; do
  [[ -n $browser ]] || browser=$(command -v "$name" || true)
done
[[ -n $browser ]] || { echo "skipped: no Chromium: scripts/install_deps.sh browser, or BROWSER=<program>"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
complain() {
  echo "$*"
  failed=1
}
# A root user, as in containers, has no sandbox. Names that are looked up anywhere else lead nowhere.
open_page() {
  timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" \
    --host-resolver-rules="MAP * ~NOTFOUND" --enable-logging=stderr --virtual-time-budget=2000 "$@" 2>"$work/log"
}
# attribute NAME: of <body>, in the page as the browser has built it
attribute() { grep -oE "<body[^>]*>" "$work/dom" | grep -oE "data-$1=\"[^\"]*\"" | cut -d'"' -f2; }
# The page FOLDER/index.html is built without an error; the document is in $work/dom.
build_page() {
  open_page --dump-dom "file://$1/index.html" >"$work/dom" || complain "$browser failed: $(tail -n 3 "$work/log")"
  [[ $(attribute errors) == 0 ]] || complain "$1: errors on the page: $(attribute errors)"
  grep -E 'CONSOLE' "$work/log" && complain "$1: the console is not empty"
  grep -oE '<path[^>]*data-curve="[^"]*"[^>]*>' "$work/dom" | grep -vqE ' d="M[0-9]' && complain "$1: a curve is empty"
  sed -E 's/base64,[^"]*//g' "$work/dom" | grep -q 'NaN' && complain "$1: NaN is drawn"
}
