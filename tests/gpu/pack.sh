#!/usr/bin/env bash
# Collects what tests/gpu/run.sh needs on a machine that has a GPU and PyTorch, and neither Debian's packages nor a network.
#
#     tests/gpu/pack.sh BUILD ARCHIVE.tar.xz
#
# BUILD was made against the libtorch of the PyTorch that the other machine has, e.g. 2.11, with no GPU or toolkit here:
#     make engine-cuda TORCH=2.11.0
#     cmake --preset release -B BUILD -DCMAKE_PREFIX_PATH=$PWD/build/cuda-2.11.0/torch
#     cmake --build BUILD --target devices_test devices_processes_test devices_input_test app_doctor_torch_test \
#       argosy_cli argosy_torch_cli nccl_conformance gpu_test gpu_copies gpu_pictures bench_train_step bench_sharded_step \
#       bench_picture_input
set -euo pipefail
[ $# = 2 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
build=$1 out=$(mktemp -d) fashion=/usr/share/datasets/fashion-mnist
trap 'rm -rf "$out"' EXIT
mkdir -p "$out/bin" "$out/lib"
for program in devices_test devices_processes_test devices_input_test app_doctor_torch_test argosy argosy-torch \
  nccl_conformance gpu_test gpu_copies gpu_pictures bench_train_step bench_sharded_step bench_picture_input; do
  found=$(find "$build" -type f -executable -name "$program")
  [ -n "$found" ] || { echo "pack.sh: $build holds no $program: build it first (see the head of $0)" >&2; exit 1; }
  install -s "$found" "$out/bin/$program"
done
# The C and C++ libraries, OpenMP and CUDA's come with the other machine and its wheels.
ldd "$out"/bin/* | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -vE '/(libtorch|libc10|libshm|libgomp|libstdc|libgcc_s|libc\.|libm\.|libdl|librt|libpthread|ld-linux)' |
  grep -vE '/lib(cu(da|dnn|blas|fft|file|rand|solver|sparse|pti)|nccl|nv)' |
  xargs cp -Lt "$out/lib"
[ -d $fashion ] || { echo "pack.sh: no $fashion (package dataset-fashion-mnist)" >&2; exit 1; }
# The first pictures of the real set: header of an IDX file, elements of one, how many.
cut_of() { # name, bytes before the elements, bytes of each, header, pictures
  mkdir -p "$out/fashion-mnist"
  { printf '%b' "$4" && head -c $(($3 * $5)) < <(zcat "$fashion/$1.gz" | tail -c +$(($2 + 1))); } |
    gzip > "$out/fashion-mnist/$1.gz"
}
for part in train t10k; do
  cut_of $part-images-idx3-ubyte 16 784 '\0\0\010\03\0\0\04\0\0\0\0\034\0\0\0\034' 1024
  cut_of $part-labels-idx1-ubyte 8 1 '\0\0\010\01\0\0\04\0' 1024
done
XZ_OPT=-T0 tar -C "$out" -cJf "$2" bin lib fashion-mnist
ls -sh "$2"
