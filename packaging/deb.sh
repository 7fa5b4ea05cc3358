#!/usr/bin/env bash
# Builds the Debian packages of what is committed, for the release of Debian that this runs on, into a folder, or in a
# bare root of another release (packaging/root.sh, as root):
#   packaging/deb.sh OUT [RELEASE]    # trixie
# Needs what scripts/install_deps.sh deb names.
set -euo pipefail
cd "$(dirname "$0")/.."
die() { echo "argosy: $*" >&2; exit 1; }

[[ $# -eq 1 || $# -eq 2 ]] || die "usage: packaging/deb.sh OUT [RELEASE]"
value_of() { sed -n "s/^$1=\"\{0,1\}\([^\"]*\).*/\1/p" /etc/os-release; }
here=$(value_of VERSION_CODENAME)
for tool in dpkg-buildpackage dh help2man lintian; do
  command -v "$tool" >/dev/null || die "there is no $tool. Run first: scripts/install_deps.sh deb"
done
mkdir -p "$1"
out=$(realpath "$1")
rm -rf "$out"/{,lib}argosy*.deb "$out"/argosy_*.{changes,buildinfo} "$out/source"
scratch=$(mktemp -d /var/tmp/argosy-deb.XXXXXX) # /tmp may be small, or without programs
trap 'rm -rf "$scratch"' EXIT
if [[ ${2-$here} != "$here" ]]; then
  git clone -q . "$scratch/argosy"
  echo "argosy: building in a root of $2 (log: $1/root.log)"
  packaging/root.sh "$2" "$scratch" -- bash -euc 'apt-get -qq update
    apt-get -qq install -y --no-install-recommends git
    cd /mnt/argosy
    scripts/install_deps.sh deb
    packaging/deb.sh /mnt/out' >"$out/root.log" 2>&1 ||
    { tail -n 20 "$out/root.log" >&2; die "the build failed: $out/root.log"; }
  cp -r "$scratch"/out/* "$out"
  tail -n 1 "$out/root.log"
  exit
fi
# Each release's packages have a version of their own, and the newer release's the higher one.
version=$(dpkg-parsechangelog -l packaging/debian/changelog -S Version)
upstream=${version%-*}
grep -q "^project(argosy VERSION $upstream " CMakeLists.txt ||
  die "packaging/debian/changelog is about $upstream, and CMakeLists.txt about another version"
commit=$(git rev-parse HEAD)
git archive --format=tar --prefix="argosy-$upstream/" "$commit" | tar -x -C "$scratch"
cd "$scratch/argosy-$upstream"
mv packaging/debian debian
sed -i "1s/(.*) [a-z]*;/($version~deb$(value_of VERSION_ID)) $here;/" debian/changelog
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
