#!/usr/bin/env bash
# Builds the wheel of the launcher:
#   packaging/wheel.sh OUT
# Needs what scripts/install_deps.sh wheel names. See docs/design/packages.md.
set -euo pipefail
cd "$(dirname "$0")/.."
die() { echo "argosy: $*" >&2; exit 1; }

[[ $# -eq 1 ]] || die "usage: packaging/wheel.sh OUT"
for tool in hatchling twine; do
  command -v "$tool" >/dev/null || die "there is no $tool. Run first: scripts/install_deps.sh wheel"
done
commit=$(git describe --always --dirty)
mkdir -p "$1" build/wheel
out=$(realpath "$1")
packaging/static_launcher.sh build/wheel/argosy build/wheel/sources
version=$(sed -n 's/^project(argosy VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
rm -rf build/wheel/licenses
/usr/bin/python3 packaging/sbom.py --files build/wheel/sources --version "$version" \
  --commit "$commit" --licenses build/wheel/licenses --out build/wheel/sbom.json
rm -f "$out"/argosy-*.whl
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
(cd packaging/python && hatchling build -t wheel -d "$out") >"$out/wheel.log" 2>&1 ||
  { tail -n 20 "$out/wheel.log" >&2; die "the wheel could not be built: $out/wheel.log"; }
twine check --strict "$out"/argosy-*.whl >>"$out/wheel.log" || die "twine finds faults: $out/wheel.log"
wheel=$(echo "$out"/argosy-*.whl)
chmod 644 "$wheel"
size=$(stat -c %s "$wheel")
[[ $size -le 15000000 ]] || die "$wheel has $size bytes, and may have 15,000,000"
echo "argosy: built $1/$(basename "$wheel"): $((size / 100000 / 10)).$((size / 100000 % 10)) MB"
