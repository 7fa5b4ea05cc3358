#!/usr/bin/env bash
# check_gpt.sh ARGOSY GPT: alone, on two processes and sharded the lesson prints the same losses, samples and hash, and
# the perplexity falls in each epoch. It learns from the beginning of the King James Bible.
set -euo pipefail
argosy=$1 program=$2
command -v bible >/dev/null || { echo "skipped: no bible (package bible-kjv)"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export OMP_NUM_THREADS=1
bible gen1:1-gen24:67 </dev/null >book.txt
[[ $(wc -c <book.txt) -gt 70000 ]] || { echo "bible gave $(wc -c <book.txt) bytes"; exit 1; }
# run NAME PROCESSES [option…]
run() {
  local name=$1 processes=$2
  shift 2
  rm -rf book.txt.bpe*
  "$argosy" launch --nproc_per_node "$processes" --log_dir "" "$program" book.txt --epochs 3 --layers 2 --width 64 \
    --vocab_size 512 --sequence_length 32 --batch_size 2 --lr 5e-3 "$@" >"$name.out" 2>"$name.err" ||
    { cat "$name.out" "$name.err"; exit 1; }
  # What the processes' number and their waiting change is no part of it.
  sed -E 's/^\[rank 0\] //; /^\[launch\]/d; /^GPT of/d; s/ +\(waited.*//' "$name.out" >"$name.txt"
}
run alone 1
run two 2
run sharded 2 --sharding
cat alone.txt
[[ $(grep -c '^epoch' alone.txt) == 3 && $(grep -c 'And God said' alone.txt) == 3 && $(grep -c '^weights ' alone.txt) == 1 ]] ||
  { echo "expected three epochs with samples, and a hash"; exit 1; }
for other in two sharded; do
  diff alone.txt $other.txt || { echo "$other: other lines than alone"; exit 1; }
done
grep -oE 'perplexity [0-9.]+' alone.txt | awk '
  NR > 1 && $2 >= before { print "the perplexity rose: " before " to " $2; bad = 1 }
  { before = $2 }
  END { if (before > 150) { print "perplexity " before " of 512 tokens: expected at most 150"; bad = 1 } exit bad }'
