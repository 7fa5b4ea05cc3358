#!/usr/bin/env bash
# check_header_of_its_name.sh ROOT: a .cpp implements the header of its name. A main program has none. Nor have the
# files of a header below, which lists functions of one kind: one file implements each, or a few of them.
set -euo pipefail
cd "$1"
lists=(
  apps/data/command.h                # the commands of `argosy data`
  apps/runs/commands.h               # the commands of `argosy runs`
  apps/torch_commands.h              # the commands that need libtorch
  argosy/comm/collectives.h          # by the way the data goes: reduce, gather, transfer, object
  argosy/datasets/sets.h             # the data sets
  argosy/image/codecs/codecs.h       # the formats of pictures
  argosy/image/color.h               # what changes colors, hue apart
  argosy/image/geometry.h            # what moves pixels, and what computes values between them
  argosy/recipes/run.h               # train, evaluate, predict and plan
  argosy/runs/page_parts.h           # the parts of a run's page
  argosy/transport/reduce_kernels.h  # the same loops for each instruction set
)
failed=0
declare -A needed
while IFS= read -r file; do
  [[ -e ${file%.cpp}.h ]] || grep -q '^int main(' "$file" && continue
  for list in "${lists[@]}"; do
    if [[ $file == "${list%/*}"/* ]] && grep -qF "#include \"$list\"" "$file"; then
      needed[$list]=1
      continue 2
    fi
  done
  echo "$file: expected a header of its name. Merge it into the .cpp of the header that it implements, or give it one"
  failed=1
done < <(find argosy apps -name '*.cpp' ! -name '*_test.cpp' ! -name '*_bench.cpp' | sort)
for list in "${lists[@]}"; do
  [[ -n ${needed[$list]:-} ]] || { echo "$list: no file needs it as a list. Remove it from this check"; failed=1; }
done
exit $failed
