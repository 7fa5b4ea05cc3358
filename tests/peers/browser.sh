#!/usr/bin/env bash
# browser.sh PROGRAM: a Chromium opens the run page that PROGRAM makes: no error, every curve, no network.
# With KEEP=FOLDER the screenshots stay there.
set -uo pipefail
program=$1
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

for state in finished running; do
  "$program" "$work/$state" "$state" || complain "the run was not made"
  open_page --dump-dom "file://$work/$state/index.html" >"$work/dom" || complain "$browser failed: $(tail -n 3 "$work/log")"
  [[ $(attribute errors) == 0 ]] || complain "$state: errors on the page: $(attribute errors)"
  grep -E 'CONSOLE' "$work/log" && complain "$state: the console is not empty"
  # Loss of two splits, two accuracies, learning rate, throughput, input wait.
  [[ $(attribute curves) == 7 ]] || complain "$state: expected 7 curves, got $(attribute curves)"
  [[ $(attribute spans) -gt 300 ]] || complain "$state: expected a timeline of more than 300 spans, got $(attribute spans)"
  [[ $(grep -c 'src="data:image/png' "$work/dom") == 12 ]] || complain "$state: expected 12 samples"
  grep -oE '<path[^>]*data-curve="[^"]*"[^>]*>' "$work/dom" | grep -vqE ' d="M[0-9]' && complain "$state: a curve is empty"
  grep -q 'NaN' "$work/dom" && complain "$state: NaN is drawn"
done
for look in 0 1; do # dark, light
  open_page --window-size=1400,2300 --blink-settings=preferredColorScheme=$look \
    --screenshot="$work/look$look.png" "file://$work/finished/index.html" >/dev/null
  [[ $(wc -c <"$work/look$look.png") -gt 50000 ]] || complain "no screenshot"
done
cmp -s "$work/look0.png" "$work/look1.png" && complain "dark and light look the same"
[[ -z ${KEEP-} ]] || cp "$work"/*.png "$KEEP"
[[ $failed -eq 0 ]] && echo "the page is drawn, in dark and in light, without an error ($(basename "$browser"))"
exit "$failed"
