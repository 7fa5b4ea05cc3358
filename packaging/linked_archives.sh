#!/usr/bin/env bash
# Prints the archives of Debian's packages that targets of a build folder are linked with, a path a line:
#   packaging/linked_archives.sh BUILD TARGET...
set -euo pipefail
[[ $# -ge 2 ]] || { echo "usage: packaging/linked_archives.sh BUILD TARGET..." >&2; exit 1; }
commands=$(ninja -C "$1" -t commands "${@:2}")
# glibc's libpthread.a is empty, and named all the same.
tr ' ' '\n' <<<"$commands" | sed -n '\#/libpthread[.]a$#d; \#^/usr/lib.*[.]a$#p' | sort -u
