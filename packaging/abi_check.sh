#!/usr/bin/env bash
# Says whether programs that were compiled with an earlier release run with the present library:
#   packaging/abi_check.sh EARLIER PRESENT OUT
# EARLIER and PRESENT are folders with the packages libargosy0 and libargosy-dev; of EARLIER, a release's for several
# systems, those of PRESENT's system are taken. Where EARLIER is empty, those of the last tag before this commit are
# built, and kept in OUT. OUT/report names what of the library's symbols and of the headers' types is gone or has
# changed (abidiff). Fails if something has, and both promise the same: the soname, and until 1.0 the minor version.
# Needs what scripts/install_deps.sh abi names. See docs/design/packages.md.
set -euo pipefail
cd "$(dirname "$0")/.."
die() { echo "argosy: $*" >&2; exit 1; }
[[ $# -eq 3 ]] || die "usage: packaging/abi_check.sh EARLIER PRESENT OUT"
for tool in abidiff dpkg-deb readelf g++ pkg-config python3; do
  command -v "$tool" >/dev/null || die "there is no $tool. Run first: scripts/install_deps.sh abi"
done
earlier=$1 report=$3/report
mkdir -p "$3"
scratch=$(mktemp -d /var/tmp/argosy-abi.XXXXXX) # /tmp may be small, or without programs
trap 'rm -rf "$scratch"' EXIT

if [[ -z $earlier ]]; then
  tag=$(git describe --tags --abbrev=0 HEAD~ 2>/dev/null) ||
    die "no commit before this one has a tag. EARLIER=<folder with a release's libargosy0 and libargosy-dev>"
  earlier=$3/$tag
  if [[ ! -d $earlier ]]; then
    git clone -q . "$scratch/source"
    git -C "$scratch/source" checkout -q "$tag"
    "$scratch/source/packaging/deb.sh" "$scratch/packages"
    mkdir "$scratch/kept"
    cp "$scratch"/packages/libargosy{0,-dev}_*.deb "$scratch/kept"
    mv "$scratch/kept" "$earlier"
  fi
fi

# unpack SIDE FOLDER: in $scratch/SIDE the packages, and surface.so with the debugging information of all types
declare -A promise
system=$(basename -a "$2"/libargosy0_*.deb | sed -n 's/.*\(~deb[0-9]*\).*/\1/p')
unpack() {
  local side=$scratch/$1 package deb version soname
  for package in libargosy0 libargosy-dev; do
    deb=("$2/${package}_"*"$system"*.deb)
    [[ ${#deb[@]} -eq 1 && -f ${deb[0]} ]] || die "expected one package ${package}_…$system… in $2"
    dpkg-deb -x "${deb[0]}" "$side"
  done
  version=$(dpkg-deb -f "${deb[0]}" Version)
  soname=$(readelf -d "$side"/usr/lib/x86_64-linux-gnu/libargosy.so | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
  [[ -n $soname ]] || die "the library of $2 has no soname"
  promise[$1]=$soname
  [[ $version != 0.* ]] || promise[$1]+=" of $(cut -d . -f 1,2 <<<"$version")"
  echo "argosy: $1: $version, $soname"
  packaging/abi_surface.py "$side/usr/include" >"$side/surface.cpp"
  local flags
  flags=$(PKG_CONFIG_PATH=$side/usr/lib/x86_64-linux-gnu/pkgconfig pkg-config --cflags argosy)
  # shellcheck disable=SC2086 # words
  (cd "$side" && g++ -std=c++20 -g -O0 -femit-class-debug-always -fPIC -shared $flags surface.cpp -o surface.so) \
    >"$scratch/$1.log" 2>&1 || { head -n 20 "$scratch/$1.log" >&2; die "the headers of $2 do not compile here"; }
}
unpack earlier "$earlier"
unpack present "$2"
# Instances of others' templates, which come and go as the compiler inlines them, are not ours.
printf '[%s]\n  symbol_name_not_regexp = ^_Z(T[VIST])?N[KOR]*6argosy\n' suppress_function suppress_variable \
  >"$scratch/ours"

# compare FILE ARGUMENTS...: abidiff's report, and what it makes of it: 4 and 8 stand for changes, 1 and 2 for errors
changed=0
compare() {
  local code=0
  abidiff --no-added-syms "${@:2}" "$scratch/earlier/$1" "$scratch/present/$1" || code=$?
  [[ $((code & 3)) -eq 0 ]] || die "abidiff failed with code $code"
  [[ $code -eq 0 ]] || changed=1
}
{
  echo "# Symbols of the library"
  compare usr/lib/x86_64-linux-gnu/libargosy.so --suppressions "$scratch/ours"
  echo "# Types of the headers"
  compare surface.so --drop-private-types \
    --headers-dir1 "$scratch/earlier/usr/include/argosy" --headers-dir2 "$scratch/present/usr/include/argosy"
} >"$report"
cat "$report"
types=$(grep -c '^void argosy_abi' "$scratch/present/surface.cpp")
if [[ $changed -eq 0 ]]; then
  echo "argosy: programs of ${promise[earlier]} run with the present library: $types types, nothing gone, nothing changed"
elif [[ ${promise[earlier]} != "${promise[present]}" ]]; then
  echo "argosy: it has changed from ${promise[earlier]} to ${promise[present]}, as it may"
else
  die "both are ${promise[present]}, and programs of the earlier would break: the report is $report"
fi
