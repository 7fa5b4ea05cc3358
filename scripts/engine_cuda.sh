#!/usr/bin/env bash
# Unpacks the official CUDA build of libtorch. FOLDER/torch is for CMAKE_PREFIX_PATH; CUDA's libraries lie beside it,
# where libtorch's look for them. No GPU, driver or toolkit is needed. Safe to run twice; 6 GB.
#   scripts/engine_cuda.sh VERSION FOLDER
set -euo pipefail
[[ $# == 2 ]] || { sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2; }
version=$1
folder=$2

die() { echo "argosy: $*" >&2; exit 1; }
install() { "$part/pip/bin/python" -m pip install --quiet --disable-pip-version-check --target "$part" "$@"; }
complete() { # FOLDER; else it names what is missing
  local library=$1/torch/lib/libtorch_cuda.so needs
  [[ -d $1/torch-$version.dist-info && -e $library ]] && needs=$(ldd "$library" 2>&1) || return 1
  ! grep 'not found' <<<"$needs"
}

if complete "$folder"; then
  echo "argosy: $folder is there"
  exit 0
fi
[[ ! -e $folder ]] || die "$folder is there, and not complete or of another version: delete it and try again"
part=$folder.part
rm -rf "$part" # of a run that was stopped
trap 'rm -rf "$part"' EXIT
trap 'exit 130' INT TERM
python3 -m venv "$part/pip" || die "python3 -m venv does not work: apt-get install python3-venv"
echo "argosy: unpacking torch $version and CUDA's libraries into $folder (6 GB, a few minutes)"
install --no-deps --only-binary=:all: "torch==$version" || die "pip could not install torch $version"
# Of what torch needs only this is for C++.
mapfile -t cuda < <(sed -nE 's/^Requires-Dist: ((cuda-toolkit|nvidia-)[^;]*).*/\1/p' "$part/torch-$version".dist-info/METADATA)
[[ ${#cuda[@]} -gt 0 ]] || die "torch $version does not say which of CUDA's libraries it needs"
install --only-binary=:all: "${cuda[@]}" || die "pip could not install ${cuda[*]}"
complete "$part" || die "libraries are missing beside $part/torch (named above)"
rm -rf "$part/pip"
mv "$part" "$folder"
echo "argosy: cmake -B build/cuda -DCMAKE_PREFIX_PATH=$(realpath "$folder")/torch"
