#!/usr/bin/env bash
# check_example.sh FIGURE LEAST MOST COMMAND…: runs the example in a scratch folder; the last number that it prints as
# FIGURE ('[0-9.]+ %', 'perplexity [0-9.]+') must be from LEAST to MOST.
set -euo pipefail
figure=$1 least=$2 most=$3
shift 3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
"$@" | tee output.txt
number=$(grep -oE "$figure" output.txt | tail -n 1 | grep -oE '[0-9]+\.[0-9]+' || true)
echo "check_example: $figure came to ${number:-nothing}, wanted $least to $most"
awk -v n="${number:--1}" -v least="$least" -v most="$most" 'BEGIN { exit !(n >= least && n <= most) }'
