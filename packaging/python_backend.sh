#!/usr/bin/env bash
# Builds argosy_NAME-VERSION.tar.gz: a backend of PyTorch or of Paddle, which pip compiles against the one it finds.
#   packaging/python_backend.sh torch|paddle OUT
# Needs what scripts/install_deps.sh torch names. See docs/design/packages.md.
set -euo pipefail
umask 022
cd "$(dirname "$0")/.."
die() { echo "argosy: $*" >&2; exit 1; }

[[ $# -eq 2 && -f packaging/${1-}/setup.py ]] || die "usage: packaging/python_backend.sh torch|paddle OUT"
name=$1
commit=$(git describe --always --dirty)
for tool in patchelf readelf cmake; do
  command -v "$tool" >/dev/null || die "there is no $tool. Run first: scripts/install_deps.sh torch"
done
version=$(sed -n 's/^project(argosy VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
mkdir -p "$2"
out=$(realpath "$2")
work=build/python_backend # libargosy_comm.so is the same for all
tree=$work/argosy_$name-$version
package=$tree/argosy/$name
log=$out/$name.log
rm -rf "$tree"
mkdir -p "$work"
{
  cmake --preset release -B "$work/library" -DARGOSY_BUILD_TESTS=OFF -DARGOSY_BUILD_EXAMPLES=OFF \
    "-DCMAKE_CXX_FLAGS=\"-ffile-prefix-map=$PWD=.\"" "-DARGOSY_ONLY=base;os;rendezvous;transport;comm;abi" &&
    cmake --build "$work/library" -j "${JOBS:-$(nproc)}" --target argosy_comm_library
} >"$log" 2>&1 || { tail -n 20 "$log" >&2; die "libargosy_comm.so could not be built: $log"; }

mkdir -p "$tree"
# What git knows, and nothing that a build left beside it.
git ls-files -z "packaging/$name" | tar -c --null -T - | tar -x -C "$tree" --strip-components=2
mkdir "$tree/argosy/abi"
cp argosy/abi/{comm,library}.h "$tree/argosy/abi"
cp packaging/python_interpreter.h "$tree/argosy/abi/interpreter.h"
mkdir -p "$package/docs/guides" # which messages name
cp docs/guides/errors.md "$package/docs/guides"
cp packaging/python_compiled.py "$package/_compiled.py"
cp LICENSE "$package"
echo "$version" >"$tree/VERSION"
# The libraries get names of their own: another library of the process may have loaded one of the same name.
mkdir "$package/lib"
install -s "$work/library/lib/libargosy_comm.so" "$package/lib"
/usr/bin/python3 packaging/shared_libraries.py "$package/lib/libargosy_comm.so" --into "$package/lib" \
  --system "$work/system" --sources "$work/sources" >>"$log"
patchelf --set-rpath '$ORIGIN' "$package/lib/libargosy_comm.so"
rename=()
for library in "$package"/lib/*.so.*; do
  file=$(basename "$library")
  rename+=(--replace-needed "$file" "libargosy_$file")
done
for library in "$package"/lib/*; do
  file=$(basename "$library")
  patchelf "${rename[@]}" "$library"
  if [[ $file != libargosy_comm.so ]]; then
    patchelf --set-soname "libargosy_$file" "$library"
    mv "$library" "$package/lib/libargosy_$file"
  fi
done
echo /usr/include/nlohmann/json.hpp >>"$work/sources" # compiled in
grep -v -E '/(libc|libm|libdl|libgcc_s|libresolv|libstdc\+\+|ld-linux-x86-64)[.]so' "$work/sources" >"$work/bundled"
/usr/bin/python3 packaging/sbom.py --files "$work/bundled" --version "$version" \
  --commit "$commit" --licenses "$package/licenses" --out "$package/sbom.json" >>"$log"
# What the system must have: its C library and its C++ library.
needs() { readelf -V -W "$package"/lib/* | grep -o "$1_[0-9.]*" | sort -V | tail -n 1; }
find "$tree" -exec touch -h -d "@$(git log -1 --format=%ct)" {} +
tar --sort=name --mode=u=rwX,go=rX --owner=0 --group=0 --numeric-owner -C "$work" -c "argosy_$name-$version" |
  gzip -9n >"$out/argosy_$name-$version.tar.gz"
size=$(stat -c %s "$out/argosy_$name-$version.tar.gz")
echo "argosy: built $2/argosy_$name-$version.tar.gz: $((size / 100000 / 10)).$((size / 100000 % 10)) MB," \
  "for $(needs GLIBC), $(needs GLIBCXX) and newer"
