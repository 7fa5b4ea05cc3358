#!/usr/bin/env bash
# browser.sh PROGRAM: a Chromium opens the run page that PROGRAM makes: no error, every curve, no network.
# With KEEP=FOLDER the screenshots stay there.
set -uo pipefail
program=$1
source "$(dirname "$0")/page.sh"

for state in finished running; do
  "$program" "$work/$state" "$state" || complain "the run was not made"
  build_page "$work/$state"
  # Loss of two splits, two accuracies, learning rate, throughput, input wait.
  [[ $(attribute curves) == 7 ]] || complain "$state: expected 7 curves, got $(attribute curves)"
  [[ $(attribute spans) -gt 300 ]] || complain "$state: expected a timeline of more than 300 spans, got $(attribute spans)"
  [[ $(grep -c 'src="data:image/png' "$work/dom") == 12 ]] || complain "$state: expected 12 samples"
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
