#!/usr/bin/env bash
# Compiles argosy.paddle against the Paddle of a Python, as pip would, and tries it:
#   tests/paddle/backend_test.sh ARGOSY LIBRARY FOLDER [PYTHON]
# ARGOSY is the launcher, LIBRARY libargosy_comm.so. What is compiled stays in FOLDER. PYTHON, PEERS or .venv-peers
# (make peers) has Paddle.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source_root=$here/../..
argosy=$1 library=$2 folder=$3 python=${4:-${PEERS:-$source_root/.venv-peers/bin/python}}
fail() { echo "paddle: $*" >&2; exit 1; }
"$python" -c 'import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, ("paddle", "setuptools"))))' \
  2>/dev/null || { echo "skipped: no Python with paddle ($python): make peers, or PEERS=<python>"; exit 77; }
mkdir -p "$folder"
cp -ru "$source_root/packaging/paddle/." "$folder"
mkdir -p "$folder/argosy/abi" "$folder/argosy/paddle/lib"
cp -u "$source_root"/argosy/abi/{comm,library}.h "$folder/argosy/abi"
cp -u "$library" "$folder/argosy/paddle/lib"
(cd "$folder" && "$python" setup.py -q build_ext --inplace) >"$folder/compile.log" 2>&1 ||
  { tail -n 30 "$folder/compile.log" >&2; fail "it does not compile"; }

export PYTHONPATH=$folder PYTHON_EXEC=$python OMP_NUM_THREADS=1 GLOG_minloglevel=2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# run RANKS JOB [VARIABLE=VALUE]: what its ranks print, sorted
run() {
  local ranks=$1 job=$2
  shift 2
  env "$@" timeout 120 "$argosy" torchrun --log_dir= --nproc_per_node "$ranks" "$here/backend_ranks.py" "$job" \
    >"$scratch/said" 2>"$scratch/errors" ||
    { local code=$?; cat "$scratch/said" "$scratch/errors" >&2; fail "$job on $ranks ranks: exit code $code"; }
  sed -nE 's/^\[rank [0-9]+\] ((done|compared|trained|weights|bits).*)/\1/p' "$scratch/said" | sort | uniq -c |
    sed -E 's/^ *//'
}
# paddle_run RANKS JOB: the same by the launcher that takes the place of Paddle's
paddle_run() {
  rm -rf "$scratch/logs"
  timeout 120 "$argosy" paddle-launch --log_dir "$scratch/logs" --nproc_per_node "$1" "$here/backend_ranks.py" "$2" \
    >"$scratch/said" 2>"$scratch/errors" ||
    { local code=$?; cat "$scratch"/said "$scratch"/errors "$scratch"/logs/* >&2; fail "$2: exit code $code"; }
  cat "$scratch"/logs/workerlog.* | grep -E '^(done|compared|trained|weights|bits)' | sort | uniq -c | sed -E 's/^ *//'
}
expect() { [[ $2 == "$1" ]] || fail "expected \"$1\", got \"$2\""; }

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
said=$(timeout 120 "$argosy" torchrun --log_dir= --nproc_per_node 3 --no_python sh -c \
  '"$0" "$1" death || [ $? -eq 3 ]' "$python" "$here/backend_ranks.py" 2>&1 | grep -c ' named$') ||
  fail "nobody named who died"
expect 2 "$said"
# Compiled for one version, and used with another.
said=$("$python" -c 'import paddle; paddle.__version__ = "2.0"; import argosy.paddle' 2>&1) && fail "it loads for any Paddle"
[[ $said == *"was compiled for Paddle "*", and this is 2.0"* ]] || fail "with another Paddle it says: $said"
echo "Paddle $("$python" -c 'import paddle; print(paddle.__version__)'): argosy.paddle does what Gloo does, and more"
