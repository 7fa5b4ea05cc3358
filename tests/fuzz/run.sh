#!/usr/bin/env bash
# run.sh [TARGET] [TIME]: builds and runs the fuzz targets (all of them without TARGET) for TIME seconds each (600), one line of
# totals per target. Seeds: tests/fuzz/corpus/TARGET; what a run finds interesting is kept in build/fuzz/corpus/TARGET and
# used again. A finding is kept in build/fuzz/findings, printed with how to repeat it, and ends its target.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${1:-all} time=${2:-600} build=build/fuzz
names=$(find tests/fuzz -name 'fuzz_*.cpp' | sed 's|.*/fuzz_||; s|\.cpp$||' | sort)
if [[ $target != all ]]; then
  grep -qx -- "$target" <<<"$names" || { echo "argosy: no fuzz target $target, there are: ${names//$'\n'/ }" >&2; exit 2; }
  names=$target
fi
[[ $time =~ ^[1-9][0-9]*$ ]] || { echo "argosy: the time must be whole seconds, got $time" >&2; exit 2; }
# shellcheck disable=SC2086 # one word each
make -s -f tests/fuzz/build.mk -j "$(nproc)" BUILD="$build" $names

status=0
for name in $names; do
  corpus=$build/corpus/$name log=$build/$name.log
  mkdir -p "$corpus" "$build/findings"
  options=$(tests/fuzz/field.sh "tests/fuzz/fuzz_$name.cpp" options)
  [[ ! -e tests/fuzz/$name.dict ]] || options+=" -dict=tests/fuzz/$name.dict"
  seeds=()
  [[ ! -d tests/fuzz/corpus/$name ]] || seeds=("tests/fuzz/corpus/$name")
  before=$(find "$build/findings" -name "$name-*" | wc -l)
  start=$(date +%s)
  # shellcheck disable=SC2086 # options are words
  "$build/fuzz_$name" -max_total_time="$time" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 $options \
    -artifact_prefix="$build/findings/$name-" "$corpus" "${seeds[@]}" >"$log" 2>&1 || status=1
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  peak=$(sed -n 's/^stat::peak_rss_mb: *//p' "$log")
  findings=$(($(find "$build/findings" -name "$name-*" | wc -l) - before))
  printf '%-14s %12s executions %6s s %3s findings  corpus %5s files  peak %5s MiB\n' "$name" "${runs:-0}" \
    "$(($(date +%s) - start))" "$findings" "$(find "$corpus" -type f | wc -l)" "${peak:-?}"
  if [[ $findings -gt 0 || -z $runs ]]; then
    status=1
    grep -aE 'ERROR|SUMMARY|runtime error|terminate called|what\(\)|Test unit written' "$log" | tail -n 8 || tail -n 8 "$log"
    echo "  repeat: $build/fuzz_$name $build/findings/$name-…; all it said: $log"
  fi
done
exit "$status"
