#!/usr/bin/env bash
# tidy_one.sh DATABASE FILE: clang-tidy on one file; silent when it is content. What it was content with
# (the preprocessed source with its comments, the checks, this script) is remembered and not judged again.
set -uo pipefail
if [[ -n ${LINT_UNTIL-} && $(date +%s) -ge $LINT_UNTIL ]]; then # see lint.sh
  echo "lint: not judged for lack of time: $2"
  exit 0
fi
known=${XDG_CACHE_HOME:-$HOME/.cache}/argosy-tidy
extra=()
# A test's (and a benchmark's) numbers are small, its structures short-lived, and it sets the
# environment before any thread.
case $2 in
*_test.cpp | *_bench.cpp | *_test.h | tests/* | benchmarks/*)
  extra+=(--checks=-bugprone-implicit-widening-of-multiplication-result,-cppcoreguidelines-special-member-functions,-cppcoreguidelines-virtual-class-destructor,-concurrency-mt-unsafe,-performance-no-int-to-ptr,-google-build-using-namespace)
  ;;
examples/* | tests/install/*) extra+=(--checks=-google-build-using-namespace) ;; # as users write
esac
noise=$(mktemp)
trap 'rm -f "$noise"' EXIT
source=$(scripts/preprocessed.py "$1" "$2" | sha256sum)
key=$(cat "$0" .clang-tidy <(clang-tidy-14 --version; echo "${extra[@]} $source") | sha256sum | cut -c1-40)
if [[ -e $known/$key ]]; then exit 0; fi
if ! out=$(clang-tidy-14 -p "$1" --quiet "${extra[@]}" --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unused-command-line-argument --extra-arg=-Wno-pragma-once-outside-header "$2" 2>"$noise"); then
  printf '%s\n' "$out"
  [[ $out == *error:* ]] || { echo "$2: clang-tidy failed:"; tail -n 20 "$noise"; }
  exit 1
fi
mkdir -p "$known" && : >"$known/$key" || true # only saves time
