#!/usr/bin/env bash
# check_header_of_its_name.sh ROOT LIST: a .cpp implements the header of its name and includes it. A main program has
# none; LIST names the other exceptions, headers that several files implement.
set -euo pipefail
list=$(readlink -f "$2")
cd "$1"
failed=0
complain() {
  echo "$*"
  failed=1
}
declare -A header_of
while IFS=: read -r header files; do
  for file in $files; do
    header_of[${header%/*}/$file]=$header
  done
done < <(grep -v '^#' "$list")
while IFS= read -r file; do
  header=${file%.cpp}.h
  if [[ ! -e $header ]]; then
    ! grep -q '^int main(' "$file" || continue
    header=${header_of[$file]:-}
    [[ -n $header ]] || {
      complain "$file: expected a header of its name. Merge it into the .cpp of the header that it implements," \
        "give it one, or add it to ${list##*/}"
      continue
    }
  fi
  grep -qF "#include \"$header\"" "$file" || complain "$file: expected #include \"$header\", which it implements"
done < <(find argosy $(compgen -G apps) -name '*.cpp' ! -name '*_test.cpp' ! -name '*_bench.cpp' | sort)
while IFS= read -r file; do
  [[ -e $file ]] || complain "${list##*/}: $file: no such file"
  [[ ! -e ${file%.cpp}.h ]] || complain "${list##*/}: $file: has a header of its name"
done < <(printf '%s\n' "${!header_of[@]}" | sort)
exit $failed
