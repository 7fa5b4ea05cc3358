#!/usr/bin/env bash
# check_recommend.sh ARGOSY PROGRAM: a log whose truth is known is generated and learned by both models; one server and
# two come to the same figures, a run that was stopped goes on to them, and the AUC is near that of the truth.
set -euo pipefail
argosy=$1 program=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
"$argosy" data criteo --lines 60000 --out clicks.tsv >generated.txt
"$argosy" data criteo --lines 5000 --seed 2 --out test.tsv >>generated.txt
gzip -1 test.tsv

learn() { # NAME SERVERS [ARGUMENT]…
  "$argosy" launch --server_num "$2" --worker_num 2 --log_dir "logs/$1" "$program" clicks.tsv --batch_size 128 \
    "${@:3}" >"$1.txt" 2>"$1.err" || { cat "$1.txt" "$1.err" >&2; exit 1; }
  sed -n 's/^\[worker 0\] //p' "$1.txt" >"$1.figures"
}
learn one 1 --test test.tsv.gz
learn two 2 --test test.tsv.gz
diff one.figures two.figures || { echo "the number of servers changed the result" >&2; exit 1; }
learn wide 2 --test test.tsv.gz --model wide_deep
learn late 2 --test test.tsv.gz --mode half_async
# The first epoch as a training of its own, which a second one goes on from.
learn begun 2 --checkpoints saved --epochs 1
learn whole 1 --epochs 2 --test test.tsv.gz
learn rest 1 --checkpoints saved --epochs 2 --test test.tsv.gz
diff <(tail -n 2 whole.figures) <(tail -n 2 rest.figures) ||
  { echo "a run that went on came to another result" >&2; exit 1; }

for run in one wide late; do
  auc=$(sed -n 's/^AUC \([0-9.]*\),.*/\1/p' $run.figures)
  awk -v auc="$auc" 'BEGIN { exit !(auc > 0.66 && auc < 0.86) }' ||
    { echo "$run: AUC $auc, expected 0.66 to 0.86" >&2; exit 1; }
done
cat generated.txt one.figures
