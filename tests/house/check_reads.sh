#!/usr/bin/env bash
# check_reads.sh ROOT: whole files, their heads and places in them are read by os/fd.h. Only what goes through a file line
# by line has a stream of its own.
set -euo pipefail
cd "$1"
line_by_line=(
  argosy/launch/log_reader.cpp
  argosy/os/folder_lock.cpp
  argosy/os/oom.cpp
  argosy/runs/this_process.cpp
  argosy/train/callbacks/earlier_lines.cpp
  argosy/train/callbacks/loggers.cpp
)
failed=0
while IFS=: read -r file line code; do
  [[ ! $code =~ ^[[:space:]]*// && $file != argosy/os/fd.cpp ]] || continue
  [[ ! $code =~ ifstream || " ${line_by_line[*]} " != *" $file "* ]] || continue
  echo "$file:$line: expected os::read_file, read_head or read_at: ${code#"${code%%[![:space:]]*}"}"
  failed=1
done < <(find argosy $(compgen -G apps) -name '*.cpp' ! -name '*_test.cpp' ! -name '*_bench.cpp' -exec \
  grep -nHE 'std::ifstream|::pread\(' {} + | sort)
exit $failed
