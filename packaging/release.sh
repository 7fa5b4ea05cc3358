#!/usr/bin/env bash
# Gathers what the other scripts have built of what is committed, with checksums and an SBOM of each:
#   packaging/release.sh FOLDER IMAGE_FOLDER OUT DEB_FOLDER...
set -euo pipefail
cd "$(dirname "$0")/.."
die() { echo "argosy: $*" >&2; exit 1; }
[[ $# -ge 4 ]] || die "usage: packaging/release.sh FOLDER IMAGE_FOLDER OUT DEB_FOLDER..."
[[ -z $(git status --porcelain) ]] || die "there are changes that are not committed, and a release is of a commit"
version=$(sed -n 's/^project(argosy VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
bundle=argosy-$version-linux-x86_64
commit=$(git describe --always --dirty)
debs=()
for folder in "${@:4}"; do
  found=("$folder"/*_"$version"-*.deb)
  [[ -f ${found[0]} ]] || die "there are no packages of $version in $folder: make release"
  debs+=("${found[@]}")
done
for name in torch paddle; do
  backend=argosy_$name-$version
  tar -xzOf "$1/$backend.tar.gz" "$backend/argosy/$name/sbom.json" >"build/$backend.sbom.json"
done
for sbom in "$1/$bundle/sbom.json" build/wheel/sbom.json build/argosy_{torch,paddle}-"$version".sbom.json "$2/sbom.json"; do
  grep -q "\"$commit\"" "$sbom" || die "$sbom is of another commit than $commit: make bundle wheel torch paddle image"
done
packaging/check_commit.sh "${debs[@]}"
image=$2/argosy-$version-oci.tar
told=$(skopeo inspect --raw "oci-archive:$image" | jq -r '.annotations["org.opencontainers.image.revision"]')
[[ $told == "$commit" ]] || die "$image is of another commit than $commit: make image"
mkdir -p "$3"
find "$3" -maxdepth 1 -type f -delete
cp "${debs[@]}" "$1/$bundle.tar.zst" "$1/argosy-$version"-*.whl "$1"/argosy_{torch,paddle}-"$version".tar.gz "$image" "$3"
cp "$1/$bundle/sbom.json" "$3/$bundle.sbom.json"
cp build/wheel/sbom.json "$3/argosy-$version-wheel.sbom.json"
cp build/argosy_{torch,paddle}-"$version".sbom.json "$3"
cp "$2/sbom.json" "$3/argosy-$version-oci.sbom.json"
format=$(packaging/sbom.py --format)
for deb in "${debs[@]}"; do dpkg-deb -W --showformat="$format" "$deb"; done >"$3/packages"
packaging/sbom.py --packages "$3/packages" --version "$version" --commit "$commit" --out "$3/argosy-$version-deb.sbom.json" >/dev/null
rm "$3/packages"
sums=$(cd "$3" && sha256sum -- *)
echo "$sums" >"$3/SHA256SUMS"
(cd "$3" && sha256sum --quiet -c SHA256SUMS)
echo "argosy: $(find "$3" -type f | wc -l) files of $commit in $3"
