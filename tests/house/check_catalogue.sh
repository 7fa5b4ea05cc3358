#!/usr/bin/env bash
# Every room that throws has a section of its name in the error catalogue: messages give its address.
set -euo pipefail
cd "$(dirname "$0")/../.."
missing=0
# The room of each "[room.operation]": what stands before the first point in a kWhere or a first argument.
rooms=$(grep -rhoE '(Error\(|kWhere = |or_throw<[A-Za-z]+>\()"[a-z_]+[".]' argosy --include='*.cpp' --include='*.h' --exclude='*_test*' |
  sed -E 's/.*"([a-z_]+)[".]/\1/' | grep -vxE 'where|test' | sort -u) # of doc comments and helpers for tests
for room in $rooms; do
  grep -qx "## $room" docs/guides/errors.md || { echo "docs/guides/errors.md has no section \"## $room\""; missing=1; }
done
# The launcher's operations have an entry each: people meet these before they know the library.
for operation in $(grep -rhoE '"launch\.[a-z_]+"' argosy/launch apps --include='*.cpp' --exclude='*_test*' | tr -d '"' | sort -u); do
  grep -qF "[$operation]" docs/guides/errors.md || { echo "docs/guides/errors.md does not know \"[$operation]\""; missing=1; }
done
[[ $(wc -w <<<"$rooms") -gt 10 ]] || { echo "found only these rooms that throw: $rooms"; missing=1; }
exit "$missing"
