#!/usr/bin/env bash
# fit_page.sh PROGRAM: a Chromium opens the page that a real fit() of PROGRAM has left: no error, every curve,
# the timeline of both ranks, pictures of each evaluation. With KEEP=FOLDER the screenshot stays there.
set -uo pipefail
program=$1
source "$(dirname "$0")/page.sh"

"$program" "$work" || complain "the training failed"
run=$work/run
build_page "$run"
# Loss and accuracy of two splits, learning rate, throughput, input wait.
[[ $(attribute curves) == 7 ]] || complain "expected 7 curves, got $(attribute curves)"
[[ $(attribute spans) -gt 300 ]] || complain "expected a timeline of more than 300 spans, got $(attribute spans)"
# All pictures that the run has kept of its 4 evaluations.
kept=$(for epoch in 1 2 3 4; do grep -o '"png"' "$run/samples/epoch $epoch.json" || echo "no pictures of epoch $epoch"; done)
[[ $kept != *no* ]] || complain "$kept"
pictures=$(grep -o 'src="data:image/png' "$work/dom" | wc -l)
[[ $pictures == $(wc -l <<<"$kept") ]] || complain "expected the pictures of 4 evaluations, $(wc -l <<<"$kept"), got $pictures"
for text in finished ShapesNet cross_entropy 'epoch 4' 'comm wait'; do
  grep -qi "$text" "$work/dom" || complain "the page does not say \"$text\""
done
open_page --window-size=1400,2500 --screenshot="$work/fit.png" "file://$run/index.html" >/dev/null
[[ $(wc -c <"$work/fit.png") -gt 50000 ]] || complain "no screenshot"
[[ -z ${KEEP-} ]] || cp "$work/fit.png" "$KEEP"
[[ $failed -eq 0 ]] && echo "the page of a fit() is drawn without an error ($(basename "$browser"))"
exit "$failed"
