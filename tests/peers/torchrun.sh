#!/usr/bin/env bash
# torchrun.sh ARGOSY PROGRAM: PROGRAM (03_fleet) trains under the real torchrun, and PyTorch's DDP under ours.
set -uo pipefail
argosy=$1
. "$(dirname "$0")/peer.sh"
own_copy "$2" "$work"
needs torch
torchrun=("$python" -m torch.distributed.run)

echo "03_fleet under torchrun, whose own store is at MASTER_PORT"
run "${torchrun[@]}" --standalone --nproc_per_node 2 --no_python "$program"
expect_accuracy 85

echo "the same over TLS: rank 0's store and its callers have certificates from the token"
ARGOSY_TLS=1 ARGOSY_TOKEN=$(openssl rand -hex 16) run "${torchrun[@]}" --standalone --nproc_per_node 2 --no_python "$program"
expect_accuracy 85
ARGOSY_TLS=1 run "${torchrun[@]}" --standalone --nproc_per_node 2 --no_python "$program"
expect 1 "TLS makes its certificates from the job's token, which is not set"

echo "under torchrun with an address that the user gives"
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
run "${torchrun[@]}" --nproc_per_node 2 --master_addr 127.0.0.1 --master_port "$port" --no_python "$program"
expect_accuracy 85

echo "a rank that fails once; torchrun restarts all"
cat >once.sh <<END
#!/bin/bash
if [[ \$TORCHELASTIC_RESTART_COUNT == 0 && \$RANK == 1 ]]; then exit 3; fi
exec "$program"
END
chmod +x once.sh
run "${torchrun[@]}" --standalone --nproc_per_node 2 --max_restarts 1 --monitor_interval 0.1 --no_python ./once.sh
expect_accuracy 85
nothing_left "$program"

echo "an error of ours in torchrun's report"
run "${torchrun[@]}" --standalone --nproc_per_node 2 --no_python "$program" /no/such/folder
expect 1 "argosy::DataError: [datasets.open] /no/such/folder: is not there" "error.json"

echo "PyTorch's DDP under argosy launch"
run "$argosy" launch --nproc_per_node 2 --log_dir '' "$here/ddp.py"
expect 0 "[rank 0] rank 0 of 2: loss fell, weights agree" "[rank 1] rank 1 of 2: loss fell, weights agree"
run "$argosy" torchrun --standalone --nproc_per_node 2 "$here/ddp.py"
expect 0 "rank 0 of 2: loss fell, weights agree" "rank 1 of 2: loss fell, weights agree"
exit "$failed"
