#!/usr/bin/env bash
# Compiles argosy.paddle against the Paddle of a Python, as pip would, and tries it:
#   tests/paddle/backend_test.sh ARGOSY LIBRARY FOLDER [PYTHON]
# ARGOSY is the launcher, LIBRARY libargosy_comm.so. What is compiled stays in FOLDER. PYTHON, PEERS or .venv-peers
# (make peers) has Paddle.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=paddle argosy=$1 library=$2 folder=$3 python=${4:-${PEERS:-$here/../../.venv-peers/bin/python}}
"$python" -c 'import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, ("paddle", "setuptools"))))' \
  2>/dev/null || { echo "skipped: no Python with paddle ($python): make peers, or PEERS=<python>"; exit 77; }
# shellcheck source=tests/support/python_backend.sh
. "$here/../support/python_backend.sh"
export PYTHON_EXEC=$python GLOG_minloglevel=2
# paddle_run RANKS JOB: the same by the launcher that takes the place of Paddle's
paddle_run() {
  rm -rf "$scratch/logs"
  timeout 120 "$argosy" paddle-launch --log_dir "$scratch/logs" --nproc_per_node "$1" "$here/backend_ranks.py" "$2" \
    >"$scratch/said" 2>"$scratch/errors" ||
    { local code=$?; cat "$scratch"/said "$scratch"/errors "$scratch"/logs/* >&2; fail "$2: exit code $code"; }
  counted "$scratch"/logs/workerlog.*
}

expect $'2 compared 54\n1 compared 78' "$(run 3 same_as_gloo)" # the last is the root
expect "3 done" "$(run 3 collectives)"
expect "2 done" "$(paddle_run 2 collectives)"
expect "3 done" "$(run 3 exchanges)"
expect "3 done" "$(run 3 messages)"
expect "3 done" "$(run 3 parts_of_the_world)"
expect "2 done" "$(paddle_run 2 fleet)"
expect "2 done" "$(run 2 misuse)"
expect "2 trained alike" "$(run 2 data_parallel_beside_gloo)"
expect "3 trained alike" "$(run 3 data_parallel_beside_gloo)"
weights=$(run 2 trained_by_gloo)
[[ $weights =~ ^2\ weights\  ]] || fail "ranks have different weights: $weights"
expect "$weights" "$(run 2 trained_by_argosy)"
expect "$weights" "$(paddle_run 2 trained_by_argosy)"
bits=$(run 3 bits)
[[ $bits =~ ^3\ bits\  ]] || fail "ranks have different sums: $bits"
expect "$bits" "$(run 3 bits ARGOSY_BACKEND=gloo)"
death death
death death_in_a_part
other_version Paddle
echo "Paddle $("$python" -c 'import paddle; print(paddle.__version__)'): argosy.paddle does what Gloo does, and more"
