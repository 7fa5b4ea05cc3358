#!/usr/bin/env bash
# Says whether a release is what was tried: each of its packages is, to the bit, in one of the folders.
#   packaging/release_tried.sh RELEASE FOLDER...
set -euo pipefail
die() { echo "argosy: $*" >&2; exit 1; }
[[ $# -ge 2 ]] || die "usage: packaging/release_tried.sh RELEASE FOLDER..."
release=$1
shift
[[ -f $release/SHA256SUMS ]] || die "there is no release in $release: make release"
(cd "$release" && sha256sum --quiet -c SHA256SUMS) || die "$release is damaged: make release"
count=0
for file in "$release"/*.{deb,whl,tar,tar.zst,tar.gz}; do
  same=
  for folder in "$@"; do
    ! cmp -s "$file" "$folder/$(basename "$file")" || same=$folder
  done
  [[ -n $same ]] || die "$file is not what was tried: make release again, and then make release-check"
  count=$((count + 1))
done
echo "argosy: the $count packages in $release are those that were tried"
