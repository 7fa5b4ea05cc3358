#!/usr/bin/env bash
# lint.sh BUILD_DIR all|changed [BASE]: formatting of everything, clang-tidy on all sources and headers or on
# those that differ from BASE (default: where this branch left origin/main, else the previous commit). A header
# is compiled by itself, which shows that it stands alone. BUILD_DIR is configured with ARGOSY_UNITY=OFF and
# need not be built. With LINT_SECONDS clang-tidy begins no file after so long, and names those that it left out.
# In between: what only `make bench` builds is compiled, for a changed header breaks it unseen.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 scope=$2 base=${3-}
[[ -z ${LINT_SECONDS-} ]] || export LINT_UNTIL=$(($(date +%s) + LINT_SECONDS))

mapfile -t sources < <(scripts/sources.sh)
clang-format-14 --dry-run -Werror "${sources[@]}"
echo "lint: ${#sources[@]} files are formatted"

mapfile -t benchmarks < <(grep -oP -- ' -o \K\S*bench\S*\.o' "$build/compile_commands.json")
scripts/quiet.sh "lint: compiling ${#benchmarks[@]} files of benchmarks" "$build/benchmarks.log" \
  cmake --build "$build" --parallel "$(nproc)" --target "${benchmarks[@]}"

if [[ $scope == changed ]]; then
  [[ -n $base ]] || base=$(git merge-base HEAD origin/main 2>/dev/null || git rev-parse -q --verify HEAD~1 || true)
  if [[ -n $base && $(git rev-parse "$base") == $(git rev-parse HEAD) ]]; then
    base=$(git rev-parse -q --verify HEAD~1 || true)
  fi
  [[ -n $base ]] || { echo "lint: nothing to compare with, clang-tidy skipped"; exit 0; }
  mapfile -t sources < <(git diff --name-only --diff-filter=AMR "$base" -- '*.cpp' '*.h')
fi
# Only what the build compiles; generated code is not ours to judge.
scripts/tidy_database.py "$build"
units=() skipped=()
for f in "${sources[@]}"; do
  if grep -qF "\"file\": \"$PWD/$f\"" "$build/tidy/compile_commands.json"; then units+=("$f"); else skipped+=("$f"); fi
done
[[ ${#skipped[@]} -eq 0 ]] || echo "lint: not compiled here, hence not checked by clang-tidy: ${skipped[*]}"
[[ ${#units[@]} -gt 0 ]] || { echo "lint: no source to check with clang-tidy"; exit 0; }

status=0
printf '%s\n' "${units[@]}" | xargs -P "$(nproc)" -n 1 scripts/tidy_one.sh "$build/tidy" || status=$?
[[ $status -eq 0 ]] || { echo "lint: clang-tidy found something (above)" >&2; exit 1; }
echo "lint: clang-tidy has nothing to say of ${#units[@]} files${LINT_UNTIL:+, but for those that it had no time for}"
