#!/usr/bin/env bash
# Gathers what the other scripts have built of what is committed, with checksums and the bundle's SBOM:
#   packaging/release.sh DEB_FOLDER FOLDER OUT
set -euo pipefail
cd "$(dirname "$0")/.."
die() { echo "argosy: $*" >&2; exit 1; }
[[ $# -eq 3 ]] || die "usage: packaging/release.sh DEB_FOLDER FOLDER OUT"
[[ -z $(git status --porcelain) ]] || die "there are changes that are not committed, and a release is of a commit"
version=$(sed -n 's/^project(argosy VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
bundle=argosy-$version-linux-x86_64
commit=$(git describe --always --dirty)
for sbom in "$2/$bundle/sbom.json" build/wheel/sbom.json; do
  grep -q "\"$commit\"" "$sbom" || die "$sbom is of another commit than $commit: make bundle wheel"
done
mkdir -p "$3"
find "$3" -maxdepth 1 -type f -delete
cp "$1"/*_"$version"-*.deb "$2/$bundle.tar.zst" "$2/argosy-$version"-*.whl "$3"
cp "$2/$bundle/sbom.json" "$3/$bundle.sbom.json"
cp build/wheel/sbom.json "$3/argosy-$version-wheel.sbom.json"
sums=$(cd "$3" && sha256sum -- *)
echo "$sums" >"$3/SHA256SUMS"
(cd "$3" && sha256sum --quiet -c SHA256SUMS)
echo "argosy: $(find "$3" -type f | wc -l) files of $commit in $3"
