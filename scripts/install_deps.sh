#!/usr/bin/env bash
# Installs what a target needs from Debian's packages, and nothing that is there already.
#   scripts/install_deps.sh KIND [--list]      # the kinds stand below: build, test, …
# --list prints the package names instead. Needs root, or sudo, only when something is missing.
set -euo pipefail

build=(g++ cmake ninja-build pkg-config
  libtorch-dev libopenblas0-openmp # libtorch-dev alone brings the reference BLAS, 20 times slower
  libgloo-dev
  libabsl-dev libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libspdlog-dev libfmt-dev nlohmann-json3-dev libssl-dev libcurl4-openssl-dev libxxhash-dev
  zlib1g-dev libisal-dev libarchive-dev libsimdjson-dev librocksdb-dev
  libpcre2-dev libjpeg62-turbo-dev libpng-dev libtiff-dev libwebp-dev
  dataset-fashion-mnist)
test=("${build[@]}" bible-kjv bible-kjv-text libgtest-dev libgmock-dev ccache clang-format-14 binutils procps python3 python3-dev python3-numpy python3-setuptools python3-torch pybind11-dev python3-yaml iproute2)
clusters=("${test[@]}" slurmctld slurmd slurm-client munge openmpi-bin mpich openssh-server openssh-client
  python3-kubernetes yamllint)
lint=("${test[@]}" libbenchmark-dev clang-tidy-14)
bench=("${build[@]}" libbenchmark-dev libopencv-core-dev libopencv-imgproc-dev python3)
fuzz=("${build[@]}" clang-14 libclang-rt-14-dev)
peers=(python3 python3-venv libtcmalloc-minimal4)
readers=(python3 python3-venv)
deb=("${build[@]}" build-essential debhelper help2man lintian debootstrap)
abi=("${deb[@]}" abigail-tools python3)
bundle=("${build[@]}" patchelf zstd python3)
wheel=("${build[@]}" python3-hatchling twine)
torch=("${build[@]}" patchelf python3)
docs=(doxygen python3-sphinx python3-myst-parser furo python3-sphinx-copybutton)
image=(dpkg-dev mmdebstrap umoci skopeo runc jq zstd shellcheck)
browser=(chromium-headless-shell) # 64 MB to fetch: tests of the run page are skipped without

die() { echo "argosy: $*" >&2; exit 1; }

kinds=(build test clusters lint bench fuzz peers readers browser docs deb abi bundle wheel torch image)
[[ -n ${1-} && " ${kinds[*]} " == *" $1 "* ]] || die "usage: scripts/install_deps.sh $(IFS='|' && echo "${kinds[*]}") [--list]"
declare -n wanted=$1
if [[ ${2-} == --list ]]; then
  printf '%s\n' "${wanted[@]}"
  exit 0
fi

command -v dpkg-query >/dev/null ||
  die "this is not Debian: install the counterparts of these packages yourself, then run cmake: ${wanted[*]}"
missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $EUID -ne 0 ]]; then
  command -v sudo >/dev/null || die "these packages are missing and installing them needs root, but there is no sudo: ${missing[*]}"
  as_root=(sudo)
  sudo -n true 2>/dev/null || [[ -t 0 ]] ||
    die "these packages are missing and sudo asks for a password, which nobody can type here: ${missing[*]}"
fi
echo "argosy: installing ${#missing[@]} packages: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 "$@" >"$log" 2>&1; }
# The package lists may be absent or stale: refresh them once if the first try fails.
if ! apt install -y --no-install-recommends "${missing[@]}"; then
  if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; }; then
    tail -n 15 "$log" >&2
    die "apt-get could not install: ${missing[*]} (its last lines stand above)"
  fi
fi
