#!/usr/bin/env bash
# check_example.sh COMMAND FIGURE LEAST MOST [LAUNCHER…]: runs the example, a program and its arguments in one word,
# in a scratch folder; the last number that it prints as FIGURE ('[0-9.]+ %', 'perplexity [0-9.]+') must be from
# LEAST to MOST.
set -euo pipefail
read -ra command <<<"$1"
figure=$2 least=$3 most=$4
shift 4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
"$@" "${command[@]}" | tee output.txt
number=$(grep -oE "$figure" output.txt | tail -n 1 | grep -oE '[0-9]+\.[0-9]+' || true)
echo "check_example: $figure came to ${number:-nothing}, wanted $least to $most"
awk -v n="${number:--1}" -v least="$least" -v most="$most" 'BEGIN { exit !(n >= least && n <= most) }'
