#!/usr/bin/env bash
# paddle_servers.sh ARGOSY PROGRAM: PROGRAM (09_parameter_server) prints the same figures under Paddle's launcher as under
# ours, and Paddle's fleet learns under ours which process is which. Its wheel for the CPU has no parameter servers.
set -uo pipefail
argosy=$1
. "$(dirname "$0")/peer.sh"
own_copy "$2" "$work"
needs paddle

echo "09_parameter_server under Paddle's launcher"  # which starts everything by Python
cat >start.py <<END
import os
os.execv("$program", ["$program"])
END
run "$argosy" launch --server_num 2 --worker_num 2 --log_dir '' "$program"
figures=$(sed -n 's/^\[worker 0\] \(AUC.*\)/\1/p' <<<"$output")
[[ $figures == AUC* ]] || fail "expected a line with the AUC"
run "$python" -m paddle.distributed.launch --server_num 2 --trainer_num 2 --log_dir logs start.py
output=$(cat logs/workerlog.0)
expect 0 "$figures"
nothing_left "$program"

echo "Paddle's fleet under argosy launch"
cat >roles.py <<END
import paddle, paddle.distributed.fleet as fleet
paddle.enable_static()
fleet.init(fleet.PaddleCloudRoleMaker())
if fleet.is_server():
    print("server", fleet.server_index(), "of", fleet.server_num(), flush=True)
else:
    print("worker", fleet.worker_index(), "of", fleet.worker_num(), "servers", fleet.server_endpoints(), flush=True)
END
run "$argosy" launch --server_num 2 --worker_num 2 --log_dir '' roles.py
expect 0 "server 0 of 2" "server 1 of 2" "worker 0 of 2 servers ['127.0.0.1:" "worker 1 of 2 servers ['127.0.0.1:"
exit "$failed"
