#!/usr/bin/env bash
# Builds the launcher without any shared library, in build/launcher, and copies it stripped:
#   packaging/static_launcher.sh FILE SOURCES
# What of Debian's packages is in it goes to SOURCES, a path a line.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ $# -eq 2 ]] || { echo "usage: packaging/static_launcher.sh FILE SOURCES" >&2; exit 1; }
mkdir -p build "$(dirname "$1")"
log=build/launcher.log
{
  cmake --preset release -B build/launcher -DARGOSY_STATIC_LAUNCHER=ON -DARGOSY_BUILD_TESTS=OFF \
    -DARGOSY_BUILD_EXAMPLES=OFF "-DCMAKE_CXX_FLAGS=\"-ffile-prefix-map=$PWD=.\"" "-DARGOSY_ONLY=base;program;os;rendezvous;launch;apps" &&
    cmake --build build/launcher -j "${JOBS:-$(nproc)}" --target argosy_cli
} >"$log" 2>&1 || { tail -n 20 "$log" >&2; echo "argosy: the launcher could not be built: $log" >&2; exit 1; }
install -s build/launcher/bin/argosy "$1"
{
  packaging/linked_archives.sh build/launcher argosy_cli
  for archive in libc.a libm.a libstdc++.a libgcc.a libgcc_eh.a; do
    realpath "$(g++ -print-file-name="$archive")"
  done
  printf '/usr/include/%s\n' fmt/format.h spdlog/spdlog.h nlohmann/json.hpp
} >"$2"
