#!/usr/bin/env bash
# Gathers what the other scripts have built, with checksums and the bundle's SBOM:
#   packaging/release.sh DEB_FOLDER FOLDER OUT
set -euo pipefail
[[ $# -eq 3 ]] || { echo "usage: packaging/release.sh DEB_FOLDER FOLDER OUT" >&2; exit 1; }
mkdir -p "$3"
find "$3" -maxdepth 1 -type f -delete
cp "$1"/*.deb "$2"/argosy-*.tar.zst "$2"/argosy-*.whl "$3"
cp "$2"/argosy-*/sbom.json "$3/sbom.json"
sums=$(cd "$3" && sha256sum -- *)
echo "$sums" >"$3/SHA256SUMS"
(cd "$3" && sha256sum --quiet -c SHA256SUMS)
echo "argosy: $(find "$3" -type f | wc -l) files in $3"
