#!/usr/bin/env bash
# Makes .venv-peers: a Python with the official PyTorch, PaddlePaddle and DALI, beside which benchmarks
# and tests/peers measure. Nothing of Argosy needs it. Safe to run twice; 7 GB.
set -euo pipefail
venv=.venv-peers
python=$venv/bin/python
wanted=benchmarks/peers/requirements.txt

die() { echo "argosy: $*" >&2; exit 1; }
complete() {
  cmp -s "$wanted" "$venv/requirements.txt" &&
    "$python" -c 'import expecttest, numpy, pandas, torch, torchvision, paddle, nvidia.dali' >/dev/null 2>&1
}

if complete; then
  echo "argosy: $venv is there"
  exit 0
fi
command -v python3 >/dev/null || die "python3 is missing"
[[ -x $python ]] || python3 -m venv "$venv" 2>/dev/null || die "python3 -m venv does not work: apt-get install python3-venv"
echo "argosy: installing $(grep -v '^#' "$wanted" | xargs) into $venv (7 GB, a few minutes)"
"$python" -m pip install --quiet --disable-pip-version-check -r "$wanted" || die "pip could not install what $wanted lists"
cp "$wanted" "$venv/requirements.txt"
complete || die "$venv is there, but its packages cannot be imported: delete it and try again"
