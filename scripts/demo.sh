#!/usr/bin/env bash
# demo.sh BIN: trains the CNN on Fashion-MNIST with two processes and says where the results lie.
set -euo pipefail
bin=$1
data=/usr/share/datasets/fashion-mnist
[[ -d $data ]] || { echo "argosy: $data is missing: install Debian's package dataset-fashion-mnist" >&2; exit 1; }
echo "argosy: $bin/argosy launch --nproc_per_node 2 $bin/fashion_mnist"
exec "$bin/argosy" launch --nproc_per_node 2 "$bin/fashion_mnist"
