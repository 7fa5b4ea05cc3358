#!/usr/bin/env bash
# slurm.sh ARGOSY PROGRAM: a real Slurm runs launchers and trains PROGRAM (03_fleet) with them and without.
# Exit code 77 (skipped) where there is no Slurm.
set -uo pipefail
argosy=$1
. "$(dirname "$0")/slurm_cluster.sh"
. "$(dirname "$0")/checks.sh"
trap cluster_down EXIT
cluster_up || exit 77
own_copy "$2" "$cluster"

# batch OPTIONS SCRIPT: a job of that script, its output in $output, its exit code in $code
batch() {
  printf '#!/bin/bash\n%s\n' "$2" >"$cluster/job.sh"
  : >"$cluster/job.out"
  # shellcheck disable=SC2086
  on_head timeout 120 sbatch --wait --quiet --chdir="$cluster" $1 -o "$cluster/job.out" "$cluster/job.sh"
  code=$?
  output=$(cat "$cluster/job.out")
}
place='echo rank $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE on $(hostname)'

# Three ranks on one node, one on the other: the script says nothing but the program.
batch "-N2 -n4 --distribution=plane=3" "$argosy launch --log_dir '' sh -c '$place'"
expect 0 "[rank 0] rank 0 of 4, 0 of 3 on node1" "[rank 2] rank 2 of 4, 2 of 3 on node1" "[rank 3] rank 3 of 4, 0 of 1 on node2"
[[ $(grep -c "MASTER_PORT" <<<"$output") == 1 ]] || fail "one table for all"

# One launcher for each node where it is said how many ranks a node has.
batch "-N2" "$argosy launch --nproc_per_node 2 --log_dir '' sh -c '$place'"
expect 0 "[rank 1] rank 1 of 4, 1 of 2 on node1" "[rank 3] rank 3 of 4, 1 of 2 on node2"

# By srun itself; a failure on the other node is the job's.
batch "-N2 -n2" "srun $argosy launch --log_dir '' sh -c '[ \$RANK = 1 ] && kill -SEGV \$\$; sleep 100'"
expect 139 "rank 1 on node2 (pid " "was killed by SIGSEGV"
[[ $(grep -c "was killed by SIGSEGV" <<<"$output") == 1 ]] || fail "one report for all"

batch "-N1 -n2" "srun $argosy launch --nproc_per_node 2 true"
expect 2 "Slurm has started 2 launchers on this node"

# Trained: through the launcher, and by srun alone.
batch "-N2 -n4 --distribution=plane=3" "export OMP_NUM_THREADS=1; $argosy launch --log_dir '' $program"
expect_accuracy 85
batch "-N2 -n2" "export OMP_NUM_THREADS=1; srun $program"
expect_accuracy 85

nothing_left "$program"
exit "$failed"
