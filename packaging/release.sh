#!/usr/bin/env bash
# Gathers what the other scripts have built of what is committed, with checksums and an SBOM of each:
#   packaging/release.sh DEB_FOLDER FOLDER IMAGE_FOLDER OUT
set -euo pipefail
cd "$(dirname "$0")/.."
die() { echo "argosy: $*" >&2; exit 1; }
[[ $# -eq 4 ]] || die "usage: packaging/release.sh DEB_FOLDER FOLDER IMAGE_FOLDER OUT"
[[ -z $(git status --porcelain) ]] || die "there are changes that are not committed, and a release is of a commit"
version=$(sed -n 's/^project(argosy VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
bundle=argosy-$version-linux-x86_64
commit=$(git describe --always --dirty)
for name in torch paddle; do
  backend=argosy_$name-$version
  tar -xzOf "$2/$backend.tar.gz" "$backend/argosy/$name/sbom.json" >"build/$backend.sbom.json"
done
for sbom in "$2/$bundle/sbom.json" build/wheel/sbom.json build/argosy_{torch,paddle}-"$version".sbom.json "$3/sbom.json"; do
  grep -q "\"$commit\"" "$sbom" || die "$sbom is of another commit than $commit: make bundle wheel torch paddle image"
done
packaging/check_commit.sh "$1"/*_"$version"-*.deb
image=$3/argosy-$version-oci.tar
told=$(skopeo inspect --raw "oci-archive:$image" | jq -r '.annotations["org.opencontainers.image.revision"]')
[[ $told == "$commit" ]] || die "$image is of another commit than $commit: make image"
mkdir -p "$4"
find "$4" -maxdepth 1 -type f -delete
cp "$1"/*_"$version"-*.deb "$2/$bundle.tar.zst" "$2/argosy-$version"-*.whl "$2"/argosy_{torch,paddle}-"$version".tar.gz "$image" "$4"
cp "$2/$bundle/sbom.json" "$4/$bundle.sbom.json"
cp build/wheel/sbom.json "$4/argosy-$version-wheel.sbom.json"
cp build/argosy_{torch,paddle}-"$version".sbom.json "$4"
cp "$3/sbom.json" "$4/argosy-$version-oci.sbom.json"
format=$(packaging/sbom.py --format)
for deb in "$1"/*_"$version"-*.deb; do dpkg-deb -W --showformat="$format" "$deb"; done >"$4/packages"
packaging/sbom.py --packages "$4/packages" --version "$version" --commit "$commit" --out "$4/argosy-$version-deb.sbom.json" >/dev/null
rm "$4/packages"
sums=$(cd "$4" && sha256sum -- *)
echo "$sums" >"$4/SHA256SUMS"
(cd "$4" && sha256sum --quiet -c SHA256SUMS)
echo "argosy: $(find "$4" -type f | wc -l) files of $commit in $4"
