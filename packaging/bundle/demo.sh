#!/bin/sh
# Trains a small network on Fashion-MNIST with two processes, into runs/demo of the current folder.
set -eu
home=$(cd "$(dirname "$0")" && pwd)
exec "$home/bin/argosy" launch --nproc_per_node 2 "$home/bin/argosy" train --model mnist_cnn --epochs 2 \
  --data "fashion_mnist:$home/share/datasets/fashion-mnist" --run_dir "${1:-runs/demo}"
