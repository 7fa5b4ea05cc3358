# Sourced by the checks of the commands of training, behind check.sh: what a command prints with --json is kept as a
# file of $results, and held against expressions.
results=$(mktemp -d)
trap 'rm -rf "$scratch" "$results"' EXIT
cd "$scratch" || exit 1
# json FILE ARGUMENTS…: runs it with --json; the last object that it prints goes to FILE, without the launcher's
# "[rank 0] " or "[worker 0] ".
json() {
  local file=$1
  shift
  "$program" "$@" --json >"$results/out" 2>"$results/err" || complain "argosy $*: $(tail -n 5 "$results/err" "$results/out")"
  sed -E 's/^\[(rank|worker) 0\] //' "$results/out" | grep '^{' | tail -n 1 >"$results/$file"
}
# holds EXPRESSION FILE…: the expression over j (a list where there are several) is true.
holds() {
  local expression=$1
  shift
  python3 - "$results" "$expression" "$@" 2>"$results/err" <<'END' ||
import json, sys
files = [json.load(open(sys.argv[1] + "/" + name)) for name in sys.argv[3:]]
j = files[0] if len(files) == 1 else files
sys.exit(0 if eval(sys.argv[2]) else 1)
END
    complain "expected $expression of $*: $(cd "$results" && cat "$@" err | cut -c 1-600)"
}
