#!/bin/sh
# Trains a small network on Fashion-MNIST with two processes:
#   demo.sh [RUN_DIR [OPTIONS]]
# RUN_DIR is runs/demo of the current folder, if none is named. OPTIONS are those of argosy train: --resume auto goes on
# with a run that was stopped.
set -eu
home=$(dirname "$(readlink -f "$0")")
case ${1-} in
  --help) exec sed -n '2,/^set/s/^# //p' "$home/demo.sh" ;;
  -*) echo "argosy: expected a folder before the option $1: demo.sh runs/demo $*" >&2 && exit 2 ;;
esac
run_dir=${1:-runs/demo}
[ $# -eq 0 ] || shift
exec "$home/bin/argosy" launch --nproc_per_node 2 "$home/bin/argosy" train --model mnist_cnn --epochs 2 \
  --data "fashion_mnist:$home/share/datasets/fashion-mnist" --run_dir "$run_dir" "$@"
