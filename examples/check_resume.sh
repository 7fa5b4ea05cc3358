#!/usr/bin/env bash
# check_resume.sh ARGOSY MNIST_DDP DATA WEIGHTS [option…]: killed after its first epoch and resumed, alone and on
# two processes, the program has the curve of an uninterrupted run, digit by digit. What is no
# checkpoint is refused in one line; WEIGHTS, of a ResNet-34 for colors and 1000 classes, are taken as
# far as they fit.
set -euo pipefail
argosy=$1 program=$2 data=$3 weights=$4
shift 4
scratch=$(mktemp -d)
running= whole=
trap 'for pid in $running $whole; do kill -KILL "$pid" 2>/dev/null; done; rm -rf "$scratch"' EXIT
cd "$scratch"
export OMP_NUM_THREADS=1
fail() {
  echo "$*"
  exit 1
}
curve() {
  grep -oE 'epoch +[0-9]+: loss [0-9.]+, accuracy [0-9.]+ %' "$1"
}
check() { # NAME COMMAND…
  local name=$1
  shift
  "$@" --checkpoint "$name.whole.kept" >"$name.whole" & # beside the other, which alone leaves a core free
  whole=$!
  "$@" --checkpoint "$name.kept" >"$name.first" &
  running=$!
  for ((turn = 0; turn < 2400; ++turn)); do
    ! compgen -G "$name.kept/step-*" >/dev/null || break
    sleep 0.05
  done
  kill -KILL "$running"
  wait "$running" || true
  running=
  "$@" --checkpoint "$name.next.kept" --resume "$name.kept" >"$name.next"
  wait "$whole" || fail "$name: the run without a pause failed"
  whole=
  echo "$name, without a pause and from the second epoch on:"
  curve "$name.whole"
  curve "$name.next"
  [[ $(curve "$name.whole" | wc -l) == 2 ]] || fail "expected two epochs"
  cmp <(curve "$name.whole" | tail -n 1) <(curve "$name.next") || fail "the resumed curve is another"
}
check alone "$program" "$data" --epochs 2 "$@"
check two "$argosy" launch --nproc_per_node 2 --log_dir "" "$program" "$data" --epochs 2 "$@"

"$program" "$data" --epochs 1 --resume "$weights" "$@" | tee part
for line in 'loaded 1 of 218 entries' 'conv1.weight +other shape +\[64, 1, 7, 7\] Float +\[64, 3, 7, 7\]' \
  'fc.weight +other shape' 'epoch +1: loss'; do
  grep -qE "$line" part || fail "expected \"$line\""
done

echo "no checkpoint" >text.pth
for file in text.pth missing.pth; do
  status=0
  "$program" "$data" --resume "$file" "$@" >out 2>err || status=$?
  cat err
  sed -i '/ warning matrix products /d' err # without the launcher, on some processors
  [[ $status == 1 && $(wc -l <err) == 1 ]] && grep -q "$file" err ||
    fail "expected one line about $file and exit code 1, got exit code $status"
done
