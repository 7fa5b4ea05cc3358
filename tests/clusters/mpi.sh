#!/usr/bin/env bash
# mpi.sh ARGOSY PROGRAM MPIRUN...: a real mpirun starts launchers, and trains PROGRAM (03_fleet) by itself.
# Exit code 77 (skipped) where that mpirun is not there.
set -uo pipefail
argosy=$1 trained=$2
shift 2
command -v "$1" >/dev/null || { echo "skipped: no $1 here: make test-clusters installs it"; exit 77; }
. "$(dirname "$0")/checks.sh"
cluster=$(mktemp -d)
trap 'rm -rf "$cluster"' EXIT
cd "$cluster" || exit 1
own_copy "$trained" "$cluster"
options=()
if [[ $1 == *openmpi* ]]; then
  options=(--oversubscribe --mca oob_tcp_if_include lo --mca btl_tcp_if_include lo)
  [[ $EUID -ne 0 ]] || options+=(--allow-run-as-root)
fi
# mpi RANKS COMMAND...: its output in $output, its exit code in $code
mpi() {
  local ranks=$1
  shift
  output=$(timeout 120 "$mpirun" "${options[@]}" -n "$ranks" "$@" 2>&1)
  code=$?
}
mpirun=$1

mpi 3 "$argosy" launch --log_dir '' sh -c 'echo rank $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE'
expect 0 "[rank 2] rank 2 of 3, 2 of 3" "[rank 0] rank 0 of 3, 0 of 3"

export OMP_NUM_THREADS=1
mpi 4 "$program"
expect_accuracy 85
nothing_left "$program"
exit "$failed"
