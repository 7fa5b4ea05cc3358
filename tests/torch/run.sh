#!/usr/bin/env bash
# Runs the shipped tests that subset.txt names on Gloo and on the backend "argosy", and compares the two:
#   tests/torch/run.sh PYTHON SDIST OUT
# PYTHON has the official PyTorch and expecttest (make peers), SDIST is argosy_torch-VERSION.tar.gz (make torch). The
# results are gloo.json, argosy.json and compared.md in OUT. AT_ONCE=4 runs as many tests at the same time, not two.
set -euo pipefail
die() { echo "argosy: $*" >&2; exit 1; }
[[ $# -eq 3 ]] || die "usage: tests/torch/run.sh PYTHON SDIST OUT"
here=$(cd "$(dirname "$0")" && pwd)
[[ -x $1 ]] || die "there is no Python $1: make peers, or PEERS=<python with torch>"
"$1" -c 'import torch, expecttest, setuptools' || die "$1 lacks what stands above: make peers makes a Python that has it"
[[ -f $2 ]] || die "there is no $2: make torch"
python=$(realpath -s "$1") sdist=$(realpath "$2")
mkdir -p "$3"
cd "$3"
rm -rf package logs ./*.json compared.md
(cd "$here" && "$python" try_shim.py)
"$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation \
  --target package "$sdist" >install.log 2>&1 || { tail -n 30 install.log >&2; die "$sdist could not be installed"; }
export PYTHONPATH=$PWD/package${PYTHONPATH:+:$PYTHONPATH}
for backend in gloo argosy; do
  echo "argosy: on $backend (output: $3/$backend.log)"
  ARGOSY_TEST_BACKEND=$backend "$python" "$here/own_suite.py" "$backend.json" --only "$here/subset.txt" \
    --at-once "${AT_ONCE:-2}" --logs "logs/$backend" >"$backend.log" 2>&1 ||
    { tail -n 30 "$backend.log" >&2; die "the tests on $backend did not run"; }
done
"$python" "$here/compare.py" gloo.json argosy.json --explained "$here/explained.txt" | tee compared.md
