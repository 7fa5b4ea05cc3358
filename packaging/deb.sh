#!/usr/bin/env bash
# Builds the Debian packages of what is committed, for the release of Debian that this runs on, into a folder:
#   packaging/deb.sh OUT
# Needs what scripts/install_deps.sh deb names.
set -euo pipefail
cd "$(dirname "$0")/.."
die() { echo "argosy: $*" >&2; exit 1; }

[[ $# -eq 1 ]] || die "usage: packaging/deb.sh OUT"
for tool in dpkg-buildpackage dh help2man lintian; do
  command -v "$tool" >/dev/null || die "there is no $tool. Run first: scripts/install_deps.sh deb"
done
mkdir -p "$1"
out=$(realpath "$1")
rm -rf "$out"/*.deb "$out"/*.changes "$out"/*.buildinfo "$out/source"
version=$(dpkg-parsechangelog -l packaging/debian/changelog -S Version)
upstream=${version%-*}
grep -q "^project(argosy VERSION $upstream " CMakeLists.txt ||
  die "packaging/debian/changelog is about $upstream, and CMakeLists.txt about another version"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
commit=$(git rev-parse HEAD)
git archive --format=tar --prefix="argosy-$upstream/" "$commit" | tar -x -C "$scratch"
cd "$scratch/argosy-$upstream"
mv packaging/debian debian
build=$(scripts/install_deps.sh build --list | paste -s -d ,)
sed "s/@BUILD@/$build/; s/@COMMIT@/$commit/" debian/control.in >debian/control
rm debian/control.in
dpkg-buildpackage --unsigned-source --unsigned-changes --build=binary -j"${JOBS:-$(nproc)}" >"$out/build.log" 2>&1 ||
  { tail -n 20 "$out/build.log" >&2; die "the build failed: $out/build.log"; }
cp "$scratch"/*.deb "$scratch"/*.buildinfo "$scratch"/*.changes "$out"
# For packaging/try_deb.sh.
mkdir "$out/source"
git -C "$OLDPWD" archive "$commit" README.md packaging tests/install | tar -x -C "$out/source"
# Argosy-Commit, of which each package is, is no field of the archive's.
lintian --allow-root --suppress-tags unknown-field --fail-on error,warning "$out"/*.changes
echo "argosy: built in $1: $(cd "$out" && echo *.deb)"
