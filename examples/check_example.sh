#!/usr/bin/env bash
# check_example.sh PROGRAM MINIMUM [LAUNCHER…]: runs the example in a scratch folder; its last
# "NN.NN %" must be at least MINIMUM.
set -euo pipefail
program=$1 minimum=$2
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
"$@" "$program" | tee output.txt
accuracy=$(grep -oE '[0-9]+\.[0-9]+ %' output.txt | tail -n 1 | tr -d ' %')
echo "check_example: test accuracy ${accuracy:-none} %, wanted at least $minimum %"
awk -v a="${accuracy:-0}" -v m="$minimum" 'BEGIN { exit !(a >= m) }'
