#!/usr/bin/env bash
# Builds argosy-VERSION-linux-x86_64.tar.zst, which needs nothing of the system that it is unpacked on:
#   packaging/bundle.sh OUT
# Needs what scripts/install_deps.sh bundle names. See docs/design/packages.md.
set -euo pipefail
cd "$(dirname "$0")/.."
die() { echo "argosy: $*" >&2; exit 1; }

[[ $# -eq 1 ]] || die "usage: packaging/bundle.sh OUT"
for tool in patchelf zstd readelf python3 cmake; do
  command -v "$tool" >/dev/null || die "there is no $tool. Run first: scripts/install_deps.sh bundle"
done
jobs=${JOBS:-$(nproc)}
version=$(sed -n 's/^project(argosy VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
mkdir -p "$1"
out=$(realpath "$1")
name=argosy-$version-linux-x86_64
root=$out/$name
libraries=$root/lib/x86_64-linux-gnu
rm -rf "$root" "$root.tar.zst"

echo "argosy: building (logs in $1)"
options=(--preset release -DARGOSY_BUILD_TESTS=OFF -DARGOSY_BUILD_EXAMPLES=OFF)
cmake "${options[@]}" -B build/launcher -DARGOSY_STATIC_LAUNCHER=ON "-DARGOSY_ONLY=base;program;os;rendezvous;launch;apps" >"$out/configure.log" 2>&1
cmake "${options[@]}" -B build/bundle -DARGOSY_SHARED=ON -DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu >>"$out/configure.log" 2>&1
cmake --build build/launcher -j "$jobs" --target argosy_cli >"$out/build.log" 2>&1
cmake --build build/bundle -j "$jobs" --target argosy_installed >>"$out/build.log" 2>&1
cmake --install build/bundle --prefix "$root" --strip >"$out/install.log" 2>&1
install -s build/launcher/bin/argosy "$root/bin/argosy"

# Programs of which each starts by the loader of the bundle. One of them may start another.
mkdir "$root/libexec"
programs=(checkpoint data runs torch)
for program in "${programs[@]/#/argosy-}"; do
  mv "$root/bin/$program" "$root/libexec/$program.elf"
  if [[ ! -e $root/bin/argosy-checkpoint ]]; then
    gcc -static -Os -s -Wall -Wextra -Werror -o "$root/bin/argosy-checkpoint" packaging/bundle/start.c
  else
    ln "$root/bin/argosy-checkpoint" "$root/bin/$program"
  fi
  ln -s "../bin/$program" "$root/libexec/$program"
done
ln -s ../bin/argosy "$root/libexec/argosy"
python3 packaging/shared_libraries.py "$root"/libexec/*.elf "$libraries"/libargosy.so.*.*.* \
  --into "$libraries" --system "$root/libexec/system" --sources "$out/sources"
mv "$root/libexec/system/ld-linux-x86-64.so.2" "$root/libexec"
mkdir "$libraries/openblas" # as in Debian: the path says which library it is
for library in libblas.so.3 liblapack.so.3; do
  mv "$libraries/$library" "$libraries/openblas"
  ln -s "openblas/$library" "$libraries/$library"
done

mkdir -p "$root/share/datasets" "$root/share/modulefiles"
cp -r /usr/share/datasets/fashion-mnist "$root/share/datasets"
cp packaging/bundle/modulefile "$root/share/modulefiles/argosy"
install -m 644 packaging/bundle/env.sh "$root"
install packaging/bundle/demo.sh "$root"
sed "s/@VERSION@/$version/" packaging/bundle/README.txt >"$root/README.txt"
ninja -C build/launcher -t commands argosy_cli | grep -o '/usr/lib[^ ]*[.]a' | sort -u >>"$out/sources"
echo /usr/share/datasets/fashion-mnist >>"$out/sources"
python3 packaging/sbom.py --files "$out/sources" --version "$version" --commit "$(git describe --always --dirty)" \
  --licenses "$root/share/licenses" --out "$root/sbom.json"

find "$root" -newermt "@$(git log -1 --format=%ct)" -exec touch -h -d "@$(git log -1 --format=%ct)" {} +
tar --sort=name --owner=0 --group=0 --numeric-owner -C "$out" -c "$name" | zstd -q -19 --long=27 -T0 -o "$root.tar.zst"
size=$(stat -c %s "$root.tar.zst")
[[ $size -le 150000000 ]] || die "$root.tar.zst has $size bytes, and may have 150,000,000"
echo "argosy: built $1/$name.tar.zst: $((size / 1000000)) MB, unpacked $(du -sm "$root" | cut -f 1) MiB"
