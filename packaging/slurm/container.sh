#!/bin/bash
#SBATCH --job-name=argosy
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --time=01:00:00
#SBATCH --output=%x-%j.out
#SBATCH --signal=TERM@120
# Trains in a container, with the image as a file for Apptainer that all nodes see:
#   apptainer build argosy.sif oci-archive:argosy-0.1.0-oci.tar
#   ARGOSY_SIF=$PWD/argosy.sif sbatch packaging/slurm/container.sh
# Not tried with Apptainer itself. Slurm's srun is not in the container, so it starts one container for each task here,
# and the launcher in each takes its task from Slurm's variables, which Apptainer passes on. For GPUs add
# --gpus-per-task=1, and --nv to the words of APPTAINER.
set -euo pipefail
sif=${ARGOSY_SIF:?set it to the image: apptainer build argosy.sif oci-archive:argosy-...-oci.tar}
[[ -r $sif ]] || { echo "there is no $sif" >&2; exit 2; }
if (($# == 0)); then # what sbatch was given behind the script's name, or else the demo
  set -- argosy train --model mnist_cnn --epochs 2 --data fashion_mnist:/usr/share/datasets/fashion-mnist \
    --run_dir "runs/${SLURM_JOB_NAME:-argosy}" --resume auto
fi
# The job's secret, by the environment alone; and the cores of a task, which srun does not take from sbatch.
ARGOSY_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export ARGOSY_TOKEN
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}
read -r -a apptainer <<<"${APPTAINER:-apptainer}"
# The home folder and the folder of the job are seen in there; the environment is passed on.
exec srun --mpi=none --input=0 "${apptainer[@]}" exec --bind "$PWD" --pwd "$PWD" "$sif" argosy launch "$@"
