#!/usr/bin/env bash
# fewer_pictures.sh FROM TO TRAINING TEST: the first pictures of a folder in MNIST's format, as such a folder.
set -euo pipefail
from=$1 to=$2 training=$3 tests=$4
mkdir -p "$to"
cut_file() { # FILE COUNT HEADER SAMPLE, the latter two in bytes
  local big_endian whole=$to/$1.whole
  local -i rest=$(($3 - 8 + $2 * $4))
  big_endian=$(printf '\\x%02x' $(($2 >> 24 & 255)) $(($2 >> 16 & 255)) $(($2 >> 8 & 255)) $(($2 & 255)))
  zcat "$from/$1.gz" >"$whole"
  (($(stat -c %s "$whole") >= rest + 8)) || { echo "$from/$1.gz: expected at least $2 samples"; exit 1; }
  {
    head -c 4 "$whole"
    printf '%b' "$big_endian"
    tail -c +9 "$whole" | head -c $rest || true # head ends, so tail is cut off
  } | gzip -n >"$whole.gz"
  mv "$whole.gz" "$to/$1.gz"
  rm "$whole"
}
cut_file train-images-idx3-ubyte "$training" 16 784
cut_file train-labels-idx1-ubyte "$training" 8 1
cut_file t10k-images-idx3-ubyte "$tests" 16 784
cut_file t10k-labels-idx1-ubyte "$tests" 8 1
