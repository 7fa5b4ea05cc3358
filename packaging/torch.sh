#!/usr/bin/env bash
# Builds argosy_torch-VERSION.tar.gz: PyTorch's backend, which pip compiles against the PyTorch that it finds.
#   packaging/torch.sh OUT
# Needs what scripts/install_deps.sh torch names. See docs/design/packages.md.
set -euo pipefail
umask 022
cd "$(dirname "$0")/.."
die() { echo "argosy: $*" >&2; exit 1; }

[[ $# -eq 1 ]] || die "usage: packaging/torch.sh OUT"
for tool in patchelf readelf cmake; do
  command -v "$tool" >/dev/null || die "there is no $tool. Run first: scripts/install_deps.sh torch"
done
version=$(sed -n 's/^project(argosy VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
mkdir -p "$1"
out=$(realpath "$1")
tree=build/torch/argosy_torch-$version
package=$tree/argosy/torch
log=$1/torch.log
rm -rf "$tree"
mkdir -p build/torch
{
  cmake --preset release -B build/torch/library -DARGOSY_BUILD_TESTS=OFF -DARGOSY_BUILD_EXAMPLES=OFF \
    "-DCMAKE_CXX_FLAGS=-ffile-prefix-map=$PWD=." "-DARGOSY_ONLY=base;os;rendezvous;transport;comm;abi" &&
    cmake --build build/torch/library -j "${JOBS:-$(nproc)}" --target argosy_comm_library
} >"$log" 2>&1 || { tail -n 20 "$log" >&2; die "libargosy_comm.so could not be built: $log"; }

mkdir -p "$tree"
# What git knows, and nothing that a build left beside it.
git ls-files -z packaging/torch | tar -c --null -T - | tar -x -C "$tree" --strip-components=2
cp argosy/abi/comm.h LICENSE "$package"
echo "$version" >"$tree/VERSION"
# The libraries get names of their own: another library of the process may have loaded one of the same name.
mkdir "$package/lib"
install -s build/torch/library/lib/libargosy_comm.so "$package/lib"
/usr/bin/python3 packaging/shared_libraries.py "$package/lib/libargosy_comm.so" --into "$package/lib" \
  --system build/torch/system --sources build/torch/sources >>"$log"
patchelf --set-rpath '$ORIGIN' "$package/lib/libargosy_comm.so"
rename=()
for library in "$package"/lib/*.so.*; do
  name=$(basename "$library")
  rename+=(--replace-needed "$name" "libargosy_$name")
done
for library in "$package"/lib/*; do
  name=$(basename "$library")
  patchelf "${rename[@]}" "$library"
  if [[ $name != libargosy_comm.so ]]; then
    patchelf --set-soname "libargosy_$name" "$library"
    mv "$library" "$package/lib/libargosy_$name"
  fi
done
grep -v -E '/(libc|libm|libdl|libgcc_s|libresolv|libstdc\+\+|ld-linux-x86-64)[.]so' build/torch/sources >build/torch/bundled
/usr/bin/python3 packaging/sbom.py --files build/torch/bundled --version "$version" \
  --commit "$(git describe --always --dirty)" --licenses "$package/licenses" --out "$package/sbom.json" >>"$log"
# What the system must have: its C library and its C++ library.
needs() { readelf -V -W "$package"/lib/* | grep -o "$1_[0-9.]*" | sort -V | tail -n 1; }
find "$tree" -exec touch -h -d "@$(git log -1 --format=%ct)" {} +
tar --sort=name --mode=u=rwX,go=rX --owner=0 --group=0 --numeric-owner -C build/torch -c "argosy_torch-$version" |
  gzip -9n >"$out/argosy_torch-$version.tar.gz"
size=$(stat -c %s "$out/argosy_torch-$version.tar.gz")
echo "argosy: built $1/argosy_torch-$version.tar.gz: $((size / 100000 / 10)).$((size / 100000 % 10)) MB," \
  "for $(needs GLIBC), $(needs GLIBCXX) and newer"
