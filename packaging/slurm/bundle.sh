#!/bin/bash
#SBATCH --job-name=argosy
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --time=01:00:00
#SBATCH --output=%x-%j.out
#SBATCH --signal=TERM@120
# Trains with the bundle, unpacked in a folder that all nodes see (your home, mostly), without root or modules:
#   tar --zstd -xf argosy-*-linux-x86_64.tar.zst
#   ARGOSY_HOME=$PWD/argosy-0.1.0-linux-x86_64 sbatch packaging/slurm/bundle.sh
# One rank for each task. Two minutes before the limit Slurm sends SIGTERM, and the training saves; the same command,
# submitted again, resumes. For GPUs add --gpus-per-task=1.
set -euo pipefail
home=${ARGOSY_HOME:?set it to the folder of the bundle}
[[ -x $home/bin/argosy ]] || { echo "there is no bin/argosy in $home" >&2; exit 2; }
if (($# == 0)); then # what sbatch was given behind the script's name, or else the demo
  set -- "$home/bin/argosy" train --model mnist_cnn --epochs 2 \
    --data "fashion_mnist:$home/share/datasets/fashion-mnist" --run_dir "runs/${SLURM_JOB_NAME:-argosy}" --resume auto
fi
exec "$home/bin/argosy" launch "$@"
