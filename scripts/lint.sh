#!/usr/bin/env bash
# lint.sh BUILD_DIR all|changed [BASE]: formatting of everything, clang-tidy on all sources or on those
# that differ from BASE (default: where this branch left origin/main, else the previous commit). A header
# that differs is checked through one unit that includes it.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 scope=$2 base=${3-}

mapfile -t sources < <(scripts/sources.sh)
clang-format-14 --dry-run -Werror "${sources[@]}"
echo "lint: ${#sources[@]} files are formatted"

if [[ $scope == changed ]]; then
  [[ -n $base ]] || base=$(git merge-base HEAD origin/main 2>/dev/null || git rev-parse -q --verify HEAD~1 || true)
  if [[ -n $base && $(git rev-parse "$base") == $(git rev-parse HEAD) ]]; then
    base=$(git rev-parse -q --verify HEAD~1 || true)
  fi
  [[ -n $base ]] || { echo "lint: nothing to compare with, clang-tidy skipped"; exit 0; }
  wanted=$(git diff --name-only --diff-filter=AMR "$base" -- '*.cpp')
  mapfile -t headers < <(git diff --name-only --diff-filter=AMR "$base" -- '*.h')
  if [[ ${#headers[@]} -gt 0 ]]; then
    through=$(scripts/units_of.py "$build" "${headers[@]}")
    wanted+=$'\n'$through
  fi
  mapfile -t sources < <(sort -u <<<"$wanted" | grep . || true)
else
  mapfile -t sources < <(printf '%s\n' "${sources[@]}" | grep '\.cpp$')
fi
# Only what the build compiles; generated code is not ours to judge.
units=() skipped=()
for f in "${sources[@]}"; do
  if grep -qF "\"file\": \"$PWD/$f\"" "$build/compile_commands.json"; then units+=("$f"); else skipped+=("$f"); fi
done
[[ ${#skipped[@]} -eq 0 ]] || echo "lint: not compiled here, hence not checked by clang-tidy: ${skipped[*]}"
[[ ${#units[@]} -gt 0 ]] || { echo "lint: no source to check with clang-tidy"; exit 0; }

# clang cannot read GCC's precompiled header nor all of its flags, and libtorch 1.13's headers need
# ivalue.h first under clang in C++20.
mkdir -p "$build/tidy"
sed -E 's/-fpch-preprocess//g; s/-Winvalid-pch//g; s/-include [^ ]*cmake_pch\.hxx//g; s/-Wno-tsan//g; s/--param ggc-min-heapsize=[0-9]*//g' "$build/compile_commands.json" >"$build/tidy/compile_commands.json"
status=0
printf '%s\n' "${units[@]}" | xargs -P "$(nproc)" -n 1 scripts/tidy_one.sh "$build/tidy" || status=$?
[[ $status -eq 0 ]] || { echo "lint: clang-tidy found something (above)" >&2; exit 1; }
echo "lint: clang-tidy is content with ${#units[@]} files"
