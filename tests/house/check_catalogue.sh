#!/usr/bin/env bash
# Every room that throws has a section of its name in the error catalogue: messages give its address.
set -euo pipefail
cd "$(dirname "$0")/../.."
missing=0
# The room of each "[room.operation]": what stands before the first point in a kWhere or a first argument.
rooms=$(grep -rhoE '(Error\(|kWhere = |or_throw<[A-Za-z]+>\()"[a-z_]+[".]' argosy apps --include='*.cpp' --include='*.h' --exclude='*_test*' |
  sed -E 's/.*"([a-z_]+)[".]/\1/' | grep -vxE 'where|test' | sort -u) # of doc comments and helpers for tests
for room in $rooms; do
  grep -qx "## $room" docs/guides/errors.md || { echo "docs/guides/errors.md has no section \"## $room\""; missing=1; }
done
# A message's address is its operation's anchor: catalogue_entry(). Names that the code makes at run
# time ("comm." and the operation) are known to the catalogue only.
operations=$(grep -rhoE "\"($(tr '\n' '|' <<<"$rooms" | sed 's/|$//'))\.[A-Za-z_]+\"" argosy apps --include='*.cpp' --include='*.h' --exclude='*_test*' | tr -d '"' | grep -vxE 'data\.pkl|argosy\.samples|[a-z]+\.(rec|jsonl)|(data|checkpoint)\.(drop_last|eval_batch_size|every_(epochs|steps)|keep_last|seed)' | sort -u) # files, fields of FitOptions
for operation in $operations; do
  grep -qF "<a id=\"$operation\"></a>" docs/guides/errors.md || { echo "docs/guides/errors.md has no anchor \"$operation\""; missing=1; }
done
twice=$(grep -ohE '<a id="[^"]+">' docs/guides/errors.md | sort | uniq -d)
[[ -z $twice ]] || { echo "docs/guides/errors.md has more than one of: $twice"; missing=1; }
[[ $(wc -w <<<"$operations") -gt 60 ]] || { echo "found only these operations: $operations"; missing=1; }
[[ $(wc -w <<<"$rooms") -gt 10 ]] || { echo "found only these rooms that throw: $rooms"; missing=1; }
exit "$missing"
