#!/usr/bin/env bash
# Builds packages and wheel again, from a clone in another folder and without a compiler cache, and compares them:
#   packaging/reproduce.sh DEB_FOLDER FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
die() { echo "argosy: $*" >&2; exit 1; }
[[ $# -eq 2 ]] || die "usage: packaging/reproduce.sh DEB_FOLDER FOLDER"
[[ -z $(git status --porcelain) ]] || die "there are changes that are not committed: a clone has others"
debs=$(realpath "$1") folder=$(realpath "$2")
scratch=$(mktemp -d /var/tmp/argosy-again.XXXXXX) # /tmp may be small, or without programs
trap 'rm -rf "$scratch"' EXIT
git clone -q . "$scratch/again"
cd "$scratch/again"
export CCACHE_DISABLE=1
packaging/deb.sh build/deb
packaging/wheel.sh build/packages
differ=()
for file in "$debs"/*.deb "$folder"/argosy-*.whl; do
  again=build/packages/$(basename "$file")
  [[ -f $again ]] || again=build/deb/$(basename "$file")
  cmp "$file" "$again" || differ+=("$(basename "$file")")
done
[[ ${#differ[@]} -eq 0 ]] || die "built twice they differ: ${differ[*]}"
echo "argosy: packages and wheel built again are the same to the bit"
