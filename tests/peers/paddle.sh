#!/usr/bin/env bash
# paddle.sh ARGOSY PROGRAM: PROGRAM (03_fleet) trains under Paddle's launcher, and Paddle's fleet under ours.
set -uo pipefail
argosy=$1
. "$(dirname "$0")/peer.sh"
own_copy "$2" "$work"
needs paddle

echo "03_fleet under Paddle's launcher"  # which starts everything by Python
cat >start.py <<END
import os
os.execv("$program", ["$program"])
END
run "$python" -m paddle.distributed.launch --nproc_per_node 2 --log_dir logs start.py
output=$(cat logs/workerlog.0)
expect_accuracy 85
nothing_left "$program"

echo "Paddle's fleet under argosy launch"
run "$argosy" launch --nproc_per_node 2 --log_dir '' "$here/fleet.py"
expect 0 "[rank 0] rank 0 of 2: loss fell, weights agree" "[rank 1] rank 1 of 2: loss fell, weights agree"
run "$argosy" paddle-launch --nproc_per_node 2 --log_dir logs2 "$here/fleet.py"
expect 0
output=$(cat logs2/workerlog.*)
expect 0 "rank 0 of 2: loss fell, weights agree" "rank 1 of 2: loss fell, weights agree"
exit "$failed"
