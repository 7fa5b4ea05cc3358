# Sourced by the tests of this folder: finds Python and makes a folder to work in. $python, $output, $code.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../clusters/checks.sh"
python=${PEERS:-$here/../../.venv-peers/bin/python}
# needs MODULE: skips where Python or the module is not there
needs() {
  "$python" -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$1') is None)" 2>/dev/null ||
    { echo "skipped: no Python with $1 ($python): make peers, or PEERS=<python>"; exit 77; }
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export OMP_NUM_THREADS=1 PYTHON_EXEC=$python
# run COMMAND...: its output in $output, its exit code in $code
run() {
  output=$(timeout 150 "$@" 2>&1)
  code=$?
}
