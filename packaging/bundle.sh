#!/usr/bin/env bash
# Builds argosy-VERSION-linux-x86_64.tar.zst, which needs nothing of the system that it is unpacked on:
#   packaging/bundle.sh OUT
# Needs what scripts/install_deps.sh bundle names. See docs/design/packages.md.
set -euo pipefail
umask 022
cd "$(dirname "$0")/.."
die() { echo "argosy: $*" >&2; exit 1; }

[[ $# -eq 1 ]] || die "usage: packaging/bundle.sh OUT"
for tool in patchelf zstd readelf python3 cmake; do
  command -v "$tool" >/dev/null || die "there is no $tool. Run first: scripts/install_deps.sh bundle"
done
version=$(sed -n 's/^project(argosy VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
commit=$(git describe --always --dirty)
mkdir -p "$1"
out=$(realpath "$1")
name=argosy-$version-linux-x86_64
root=$out/$name
libraries=$root/lib/x86_64-linux-gnu
rm -rf "$root" "$root.tar.zst"

echo "argosy: building (log: $1/build.log)"
{
  cmake --preset release -B build/bundle -DARGOSY_BUILD_TESTS=OFF -DARGOSY_BUILD_EXAMPLES=OFF -DARGOSY_SHARED=ON \
    -DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu "-DCMAKE_CXX_FLAGS=\"-ffile-prefix-map=$PWD=.\"" &&
    cmake --build build/bundle -j "${JOBS:-$(nproc)}" --target argosy_installed &&
    cmake --install build/bundle --prefix "$root" --strip
} >"$out/build.log" 2>&1 || { tail -n 20 "$out/build.log" >&2; die "the build failed: $out/build.log"; }
packaging/static_launcher.sh "$root/bin/argosy" "$out/launcher_sources"

# Programs of which each starts by the loader of the bundle. One of them may start another.
mkdir "$root/libexec"
rm -f "$out/start" # the links of a former build
gcc -static -Os -s -Wall -Wextra -Werror -o "$out/start" packaging/bundle/start.c
for program in argosy-{checkpoint,data,runs,torch}; do
  mv "$root/bin/$program" "$root/libexec/$program.elf"
  ln "$out/start" "$root/bin/$program"
  ln -s "../bin/$program" "$root/libexec/$program"
done
ln -s ../bin/argosy "$root/libexec/argosy"
/usr/bin/python3 packaging/shared_libraries.py "$root"/libexec/*.elf "$libraries"/libargosy.so.*.*.* \
  --into "$libraries" --system "$root/libexec/system" --sources "$out/sources"
gcc -shared -fPIC -Os -s -Wall -Wextra -Werror -Wl,-soname,libjbig.so.0 -o "$libraries/libjbig.so.0" packaging/bundle/no_jbig.c
sed -i '/libjbig/d' "$out/sources"
mv "$root/libexec/system/ld-linux-x86-64.so.2" "$root/libexec"
patchelf --set-rpath '$ORIGIN' "$libraries"/libargosy.so.*.*.*
mkdir "$libraries/openblas" # as in Debian: the path says which library it is
for library in libblas.so.3 liblapack.so.3; do
  mv "$libraries/$library" "$libraries/openblas"
  ln -s "openblas/$library" "$libraries/$library"
done

# For programs of one's own: what argosy.h and torch.h include, and what CMake and pkg-config ask for.
for library in torch torch_cpu c10 fmt; do
  real=$(realpath "/usr/lib/x86_64-linux-gnu/lib$library.so")
  soname=$(readelf -d "$real" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
  [[ -e $libraries/$soname ]] || cp "$real" "$libraries/$soname"
  ln -s "$soname" "$libraries/lib$library.so"
  [[ -e $libraries/$(basename "$real") ]] || ln -s "$soname" "$libraries/$(basename "$real")"
done
printf '#include <argosy/argosy.h>\n#include <torch/torch.h>\n' |
  g++ -std=c++20 -I "$root/include" -I /usr/include/torch/csrc/api/include -M -x c++ - | tr -s ' \\' '\n' |
  sed -n '\#^/usr/include/#p' | xargs realpath | sort -u >"$out/headers"
xargs dpkg -S <"$out/headers" | sed 's/[:,].*//' | sort -u | sed -E '/^(libc6|libstdc[+][+]-[0-9]+|linux-libc)-dev$/d' |
  while read -r package; do
    dpkg -L "$package" | sed -En 's#^/usr/((include|lib/x86_64-linux-gnu/cmake/fmt|share/cmake/nlohmann_json)/.*)#\1#p' |
      tar -C /usr -c --no-recursion -T - | tar -C "$root" -x
    echo "/usr/share/doc/$package/copyright" >>"$out/sources"
  done
sed -i 's#/usr/include#${includedir}#g; s#/usr/lib/x86_64-linux-gnu#${libdir}#g' "$libraries/pkgconfig/argosy.pc"
sed -i 's/^Requires: fmt$//; s/^Libs: .*/& -lfmt -Wl,-rpath,${libdir}/; s/-I\${/-isystem ${/g' "$libraries/pkgconfig/argosy.pc"

mkdir -p "$root/share/datasets" "$root/share/modulefiles"
cp -r /usr/share/datasets/fashion-mnist "$root/share/datasets"
cp packaging/bundle/modulefile "$root/share/modulefiles/argosy"
install -m 644 packaging/bundle/env.sh "$root"
install packaging/bundle/demo.sh "$root"
sed "s/@VERSION@/$version/" packaging/bundle/README.txt >"$root/README.txt"
cat "$out/launcher_sources" >>"$out/sources"
printf '%s\n' /usr/share/datasets/fashion-mnist /usr/include/xxhash.h >>"$out/sources" # xxhash is compiled in
/usr/bin/python3 packaging/sbom.py --files "$out/sources" --version "$version" --commit "$commit" \
  --licenses "$root/share/licenses" --out "$root/sbom.json"

code=0 # 1 where nothing is found
named=$(grep -rlF "$PWD" "$root") || code=$?
[[ $code -eq 1 ]] || die "the folder that it was built in is named in: ${named//$'\n'/, }"
find "$root" -newermt "@$(git log -1 --format=%ct)" -exec touch -h -d "@$(git log -1 --format=%ct)" {} +
tar --sort=name --mode=u=rwX,go=rX --owner=0 --group=0 --numeric-owner -C "$out" -c "$name" | zstd -q -19 --long=27 -T0 -o "$root.tar.zst"
size=$(stat -c %s "$root.tar.zst")
[[ $size -le 150000000 ]] || die "$root.tar.zst has $size bytes, and may have 150,000,000"
echo "argosy: built $1/$name.tar.zst: $((size / 1000000)) MB, unpacked $(du -sm "$root" | cut -f 1) MiB"
