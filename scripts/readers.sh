#!/usr/bin/env bash
# Makes .venv-readers: a Python with what reads Argosy's files (tensorboard, visualdl, safetensors), without
# torch. Tests find it there and are skipped without. Safe to run twice; 250 MB.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv-readers
python=$venv/bin/python
wanted=tests/peers/readers.txt
alone=tests/peers/readers_alone.txt

die() { echo "argosy: $*" >&2; exit 1; }
complete() {
  cat "$wanted" "$alone" | cmp -s - "$venv/requirements.txt" &&
    "$python" -c 'import tensorboard, visualdl, safetensors' >/dev/null 2>&1
}

if complete; then
  echo "argosy: $venv is there"
  exit 0
fi
command -v python3 >/dev/null || die "python3 is missing"
[[ -x $python ]] || python3 -m venv "$venv" 2>/dev/null || die "python3 -m venv does not work: apt-get install python3-venv"
echo "argosy: installing $(cat "$wanted" "$alone" | grep -v '^#' | xargs) into $venv (250 MB)"
pip() { "$python" -m pip install --quiet --disable-pip-version-check "$@"; }
pip -r "$wanted" || die "pip could not install what $wanted lists"
pip --no-deps -r "$alone" || die "pip could not install what $alone lists"
cat "$wanted" "$alone" >"$venv/requirements.txt"
complete || die "$venv is there, but its packages cannot be imported: delete it and try again"
