#!/usr/bin/env bash
# check_library_order.sh PROGRAM: the loader meets the C++ library before libtorch, some builds of which export a broken
# std::filesystem.
set -euo pipefail
first=$(readelf -d "$1" | grep -oEm1 'libstdc\+\+|libtorch|libc10' || true)
if [ "$first" != libstdc++ ]; then
  echo "$1: expected libstdc++ before the libraries of libtorch, got ${first:-neither}" >&2
  exit 1
fi
