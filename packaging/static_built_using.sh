#!/usr/bin/env bash
# Prints, for debian/PACKAGE.substvars, the source packages of which something is in targets of a build folder: archives
# that they are linked with, and headers that have no library:
#   packaging/static_built_using.sh BUILD TARGET...
set -euo pipefail
[[ $# -ge 2 ]] || { echo "usage: packaging/static_built_using.sh BUILD TARGET..." >&2; exit 1; }
archives=$("$(dirname "$0")/linked_archives.sh" "$@")
# shellcheck disable=SC2086 # words
packages=$(dpkg -S $archives /usr/include/nlohmann/json.hpp /usr/include/xxhash.h | sed 's/[:,].*//' | sort -u)
# shellcheck disable=SC2016,SC2086 # dpkg-query's own words; words
sources=$(dpkg-query -W -f '${source:Package} (= ${source:Version})\n' $packages | sort -u | paste -s -d ,)
echo "argosy:Static=${sources//,/, }"
