#!/usr/bin/env bash
# Collects what tests/gpu/run.sh needs on a machine that has a GPU and PyTorch, and neither Debian's packages nor a network.
#
#     tests/gpu/pack.sh BUILD ARCHIVE.tar.xz
#
# BUILD was made against the headers and libraries of the wheel that the other machine has, e.g. torch 2.11 for CUDA 13:
#     pip download --no-deps --python-version 3.12 --platform manylinux_2_28_x86_64 --only-binary=:all: torch==2.11.0
#     unzip -d wheel torch-*.whl 'torch/include/*' 'torch/lib/*'
#     ignore=-Wl,--unresolved-symbols=ignore-in-shared-libs        # CUDA's libraries are other wheels
#     cmake --preset release -B BUILD -DCMAKE_PREFIX_PATH=$PWD/wheel/torch -DARGOSY_BUILD_TESTS=ON \
#       -DARGOSY_BUILD_BENCHMARKS=ON -DCMAKE_EXE_LINKER_FLAGS=$ignore -DCMAKE_SHARED_LINKER_FLAGS=$ignore
#     cmake --build BUILD --target devices_test devices_processes_test bench_train_step argosy_cli
set -euo pipefail
[ $# = 2 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
build=$1 out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
mkdir -p "$out/bin" "$out/lib"
for program in devices_test devices_processes_test bench_train_step argosy; do
  found=$(find "$build" -type f -executable -name "$program")
  [ -n "$found" ] || { echo "pack.sh: $build holds no $program: build it first (see the head of $0)" >&2; exit 1; }
  install -s "$found" "$out/bin/$program"
done
# The C and C++ libraries, OpenMP and CUDA's come with the other machine and its wheels.
ldd "$out"/bin/* | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -vE '/(libtorch|libc10|libshm|libgomp|libstdc|libgcc_s|libc\.|libm\.|libdl|librt|libpthread|ld-linux)' |
  grep -vE '/lib(cu(da|dnn|blas|fft|file|rand|solver|sparse|pti)|nccl|nv)' |
  xargs cp -Lt "$out/lib"
XZ_OPT=-T0 tar -C "$out" -cJf "$2" bin lib
ls -sh "$2"
