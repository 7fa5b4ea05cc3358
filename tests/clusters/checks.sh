# Sourced: what the tests of this folder check. $output and $code are those of the last job.
failed=0
fail() {
  echo "FAILED: $*; exit code ${code:-?}, output:"
  echo "$output"
  failed=1
}
# expect CODE WORDS...: exit code and parts of the output
expect() {
  local wanted=$1 words
  shift
  [[ $code == "$wanted" ]] || fail "expected exit code $wanted"
  for words; do grep -qF -- "$words" <<<"$output" || fail "expected \"$words\""; done
}
# expect_accuracy PERCENT: one line per epoch, the last at least that good
expect_accuracy() {
  [[ $code == 0 ]] || fail "expected exit code 0"
  local accuracy
  accuracy=$(sed -nE 's/.*epoch 2: .*accuracy ([0-9.]+) %.*/\1/p' <<<"$output")
  awk -v got="${accuracy:-0}" -v least="$1" 'BEGIN { exit !(got >= least) }' ||
    fail "expected one accuracy of $1 % or more after epoch 2, got \"$accuracy\""
}
# own_copy PROGRAM FOLDER: $program becomes a copy there, so that nothing_left sees this test's processes
# and not those of one that runs beside it
own_copy() {
  program=$2/$(basename "$1")
  cp "$1" "$program"
}
# nothing_left PROGRAM: no process of it
nothing_left() {
  local pid
  for pid in /proc/[0-9]*; do
    [[ $(readlink "$pid/exe" 2>/dev/null) != "$1" ]] || fail "process ${pid#/proc/} of $1 is left"
  done
}
