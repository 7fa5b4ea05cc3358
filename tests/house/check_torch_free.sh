#!/usr/bin/env bash
# check_torch_free.sh PROGRAM: the program loads no library of libtorch, directly or not.
set -euo pipefail
libraries=$(ldd "$1")
if grep -E 'libtorch|libc10' <<<"$libraries"; then
  echo "$1 loads libtorch" >&2
  exit 1
fi
