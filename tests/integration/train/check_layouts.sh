#!/usr/bin/env bash
# check_layouts.sh ARGOSY: `argosy train` of a language model on four processes, two by two, that is killed (a rank by
# SIGKILL; then launcher and ranks at once) and goes on on three processes that divide everything, on one, and on two
# that only divide the optimizer's state, comes to the weights of the undisturbed training. What the four left becomes
# one file, and PyTorch's distributed form, with the values that one process alone had at that step.
set -u
argosy=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
launcher=
trap '[[ -z $launcher ]] || kill -KILL $launcher $(ranks_of $launcher) 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
export OMP_NUM_THREADS=1 ARGOSY_DATA_HOME=$work/home
fail() {
  echo "check_layouts: $*" >&2
  exit 1
}
ranks_of() { pgrep -P "$1" argosy-torch; }
for ((i = 0; i < 150; ++i)); do
  echo "$i ships with $((i * 7 % 31)) oars each left the harbour, and $((i * 5 % 23)) came back before the evening."
done >ships.txt
recipe=(train --model gpt:layers=2,width=32,heads=2 --data text:ships.txt --sequence_length 32 --batch_size 1
  --virtual_ranks 12 --epochs 2 --optimizer adamw --schedule cosine --seed 3 --verbose 0 --num_workers 1)
# go NAME PROCESSES [options]: trains in the folder NAME and prints the hash.
go() {
  local name=$1 processes=$2
  shift 2
  timeout 300 "$argosy" launch -n "$processes" --log_dir "" "$argosy" "${recipe[@]}" --run_dir "$name" --json "$@" \
    >"$name.out" 2>"$name.err" || fail "$name on $processes: $(tail -n 5 "$name.err")"
  grep -o '"steps":[0-9]*\|"weights_hash":"[0-9a-f]*"' "$name.out" | tr '\n' ' '
}

whole=$(go whole 4 --mesh dp=2,sharding=2)
echo "undisturbed, dp=2,sharding=2: $whole"
[[ $whole == *weights_hash* ]] || fail "no hash"

# killed NAME: begins in the folder NAME and is killed after a few updates.
killed() {
  local name=$1 i victims
  "$argosy" launch -n 4 --log_dir "" "$argosy" "${recipe[@]}" --run_dir "$name" --save_freq 2 --mesh dp=2,sharding=2 \
    >"$name.out" 2>"$name.err" &
  launcher=$!
  for ((i = 0; i < 6000; ++i)); do
    compgen -G "$name/checkpoints/step-*6" >/dev/null && break
    kill -0 $launcher 2>/dev/null || fail "$name ended too early: $(tail -n 5 "$name.err")"
    sleep 0.01
  done
  victims=$(ranks_of $launcher)
  [[ $(wc -w <<<"$victims") == 4 ]] || fail "expected four ranks, found: $victims"
  case $name in
    rank) kill -KILL "$(tail -n 1 <<<"$victims")" ;;
    all) kill -KILL $launcher $victims ;;
  esac
  { wait $launcher; } 2>/dev/null && fail "$name: it was not killed"
  launcher=
  [[ ! -e $name/model.pt ]] || fail "$name: it had finished"
}
# hash_of FILE
hash_of() { "$argosy" checkpoint hash "$1" | cut -d ' ' -f 1; }
# converted CHECKPOINT PART: the hashes of the part in one file, and in PyTorch's form.
converted() {
  rm -rf one.safetensors one.dcp
  for to in one.safetensors one.dcp; do
    "$argosy" checkpoint convert --part "$2" "$1" $to >convert.out 2>&1 || fail "$1 to $to: $(cat convert.out)"
  done
  echo "$(hash_of one.safetensors) $(python3 "$here/hash_of_dcp.py" one.dcp)"
}
# expect_converted CHECKPOINT: it is in parts, and becomes what the training on one process had.
expect_converted() {
  local step=${1##*/} part alone
  for part in model optimizer; do
    [[ -e $1/$part-00004-of-00004.safetensors ]] || fail "$1: no four parts of $part"
    alone=$(converted "alone/checkpoints/$step" $part)
    [[ ${#alone} == 129 && ${alone% *} == "${alone#* }" ]] || fail "$step, $part of one process: $alone"
    [[ $(converted "$1" $part) == "$alone" ]] || fail "$1: other values of $part than one process has"
  done
  alone=$(hash_of "alone/checkpoints/$step")
  [[ ${#alone} == 64 && $(hash_of "$1") == "$alone" ]] || fail "$1: other weights than one process has"
}

alone=$(go alone 1 --save_freq 2 --keep_last 0)
[[ $alone == "$whole" ]] || fail "on one process: $alone"
for name in rank all; do
  killed $name
  steps=("$name"/checkpoints/step-*)
  expect_converted "${steps[-1]}"
  cp -r $name $name.one && cp -r $name $name.two
  for layout in "$name 3 --mesh sharding=3" "$name.one 1" "$name.two 2 --mesh sharding --sharding_stage 2"; do
    # shellcheck disable=SC2086  # a list
    resumed=$(go $layout --resume must)
    echo "killed ($name), then $layout: $resumed"
    [[ $resumed == "$whole" ]] || fail "$layout: other weights than the undisturbed training"
  done
done
[[ $(go other 1 --lr 2e-3) != "$whole" ]] || fail "another seed has the same hash"
