#!/usr/bin/env bash
# check_prefix.sh CMAKE MODULE_FOLDER: programs load libtorch's library of GPUs, CUDA's or ROCm's, where the prefix has
# it, though none of its symbols is used. The prefix is of empty files.
set -uo pipefail
cmake=$1 modules=$2 scratch=$(mktemp -d) failed=0
trap 'rm -rf "$scratch"' EXIT
cat > "$scratch/CMakeLists.txt" << 'PROJECT'
cmake_minimum_required(VERSION 3.25)
project(prefix LANGUAGES NONE)
set(CMAKE_FIND_LIBRARY_PREFIXES lib)
set(CMAKE_FIND_LIBRARY_SUFFIXES .so)
add_library(fmt::fmt INTERFACE IMPORTED)
include(${MODULES}/ArgosyTorch.cmake)
get_target_property(libraries argosy_torch INTERFACE_LINK_LIBRARIES)
message(STATUS "links ${libraries}")
PROJECT
for gpu in cuda hip none; do # cuda is moved below
  prefix=$scratch/$gpu
  api=$prefix/include/torch/csrc/api/include/torch
  mkdir -p "$api" "$prefix/lib"
  touch "$api/torch.h" "$prefix"/lib/lib{torch,torch_cpu,c10,torch_$gpu}.so
  printf '#define TORCH_VERSION_%s %s\n' MAJOR 2 MINOR 11 PATCH 0 > "$api/version.h"
  output=$("$cmake" -S "$scratch" -B "$scratch/build_$gpu" -DMODULES="$modules" -DCMAKE_PREFIX_PATH="$prefix" 2>&1)
  linked=$(grep -o "links .*--no-as-needed,[^;]*libtorch_$gpu.so,--as-needed" <<< "$output")
  if [ $gpu = none ]; then
    grep -q '^-- links .*libc10.so$' <<< "$output" || { echo "a libtorch for the CPU: $output"; failed=1; }
  elif [ -z "$linked" ]; then
    echo "libtorch_$gpu.so is not linked: $output"
    failed=1
  fi
done
# A folder that holds none: a line says what was taken instead.
mkdir -p "$scratch/above"
mv "$scratch/cuda" "$scratch/above/torch"
for wrong in "$scratch/nowhere" "$scratch/above"; do
  output=$("$cmake" -S "$scratch" -B "$scratch/build_wrong" -DMODULES="$modules" \
    -DCMAKE_PREFIX_PATH="$wrong;$scratch/hip" 2>&1)
  tr -s ' \n' '  ' <<< "$output" | grep -q "CMAKE_PREFIX_PATH .*with ROCm" || { echo "no warning: $output"; failed=1; }
done
exit $failed
