# Sourced by the checks of the commands, which name the command under test and their folder:
#   source "$(dirname "$0")/../check.sh" "argosy data" "$1"
set -uo pipefail
shown=$1
program=$(realpath "$2")
failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
complain() {
  echo "$*"
  failed=1
}
# expect CODE WORDS ARGUMENTS…: runs the command, compares its exit code, looks for the words in its output.
expect() {
  local code=$1 words=$2 output rc
  shift 2
  output=$("$program" "$@" 2>&1) && rc=0 || rc=$?
  if [[ $rc -ne $code || $output != *"$words"* ]]; then
    complain "$shown $*: expected exit code $code and \"$words\", got $rc and: $output"
  fi
}
# json PYTHON ARGUMENTS…: runs the command with --json; the expression over `j` must hold for what it prints.
json() {
  local expression=$1
  shift
  "$program" "$@" --json >"$scratch/json" 2>"$scratch/error"
  python3 -c "import json, sys; j = json.load(sys.stdin); assert $expression, j" <"$scratch/json" ||
    complain "$shown $* --json: expected $expression, got: $(cat "$scratch/json" "$scratch/error")"
}
# A disk that is full, as the reader of --help, is a failure that says why.
expect_full_disk() {
  local error
  if error=$("$program" --help 2>&1 >/dev/full) || [[ $error != *"No space left"* ]]; then
    complain "$shown --help >/dev/full: expected a failure that says why, got: $error"
  fi
}
