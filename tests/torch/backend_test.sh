#!/usr/bin/env bash
# Compiles the backend against the PyTorch of PYTHON, as pip would, and tries it:
#   tests/torch/backend_test.sh ARGOSY LIBRARY FOLDER [PYTHON]
# ARGOSY is the launcher, LIBRARY libargosy_comm.so. What is compiled stays in FOLDER. PYTHON is Debian's, if none is
# named; "peers" stands for that of make peers, or PEERS.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source_root=$here/../..
argosy=$1 library=$2 folder=$3 python=${4:-/usr/bin/python3}
[[ $python != peers ]] || python=${PEERS:-$source_root/.venv-peers/bin/python}
fail() { echo "torch: $*" >&2; exit 1; }
"$python" -c 'import torch, setuptools' 2>/dev/null || { echo "skipped: $python has no torch: scripts/install_deps.sh test, or make peers"; exit 77; }
mkdir -p "$folder"
cp -ru "$source_root/packaging/torch/." "$folder"
mkdir -p "$folder/argosy/abi" "$folder/argosy/torch/lib"
cp -u "$source_root"/argosy/abi/{comm,library}.h "$folder/argosy/abi"
cp -u "$library" "$folder/argosy/torch/lib"
(cd "$folder" && "$python" setup.py -q build_ext --inplace) >"$folder/compile.log" 2>&1 ||
  { tail -n 30 "$folder/compile.log" >&2; fail "it does not compile"; }

export PYTHONPATH=$folder OMP_NUM_THREADS=1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# run RANKS JOB [VARIABLE=VALUE]: what its ranks print, sorted. The job is one of backend_ranks.py.
run() { run_program backend_ranks.py "$@"; }
run_program() {
  local program=$1 ranks=$2 job=$3
  shift 3
  env "$@" timeout 120 "$argosy" torchrun --log_dir= --nproc_per_node "$ranks" --no_python "$python" "$here/$program" "$job" \
    >"$scratch/said" 2>"$scratch/errors" ||
    { local code=$?; cat "$scratch/said" "$scratch/errors" >&2; fail "$job on $ranks ranks: exit code $code"; }
  sed -E 's/^\[rank [0-9]+\] //' "$scratch/said" | sort | uniq -c | sed -E 's/^ *//'
}
expect() { [[ $2 == "$1" ]] || fail "expected \"$1\", got \"$2\""; }

awk '/^```python$/ { on = 1; next } /^```$/ { on = 0 } on' "$source_root/docs/guides/python.md" >"$scratch/train.py"
timeout 120 "$argosy" torchrun --log_dir= --nproc_per_node 2 --no_python "$python" "$scratch/train.py" >"$scratch/said" ||
  fail "the guide's program does not run: $(cat "$scratch/said")"
[[ $(grep -c '^\[rank [01]\] rank [01]: loss 0\.[0-9]*$' "$scratch/said") -eq 2 ]] || fail "the guide's program says $(cat "$scratch/said")"

expect $'2 compared 66\n1 compared 90' "$(run 3 same_as_gloo)" # the last is the root
expect "3 done" "$(run 3 what_gloo_lacks)"
expect "3 done" "$(run 3 shapes)"
expect "3 done" "$(run 3 shapes ARGOSY_BACKEND=gloo)"
expect "3 done" "$(run 3 parts_of_the_world)"
expect "3 done" "$(run 3 any_source)"
expect "2 done" "$(run 2 misuse)"
expect "2 done" "$(run 2 buckets)"
[[ $(run 2 ddp) =~ ^2\ trained\ [-0-9.]+$ ]] || fail "the ranks of a training differ: $(run 2 ddp)"
[[ $(run 3 ddp) =~ ^3\ trained\ [-0-9.]+$ ]] || fail "the ranks of a training differ: $(run 3 ddp)"
bits=$(run 5 bits)
[[ $bits =~ ^5\ bits\  ]] || fail "ranks have different sums: $bits"
expect "$bits" "$(run 5 bits ARGOSY_BACKEND=gloo)"
if "$python" -c 'import sys, torch; sys.exit(tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6))'; then
  expect "2 done" "$(run 2 again)" # 1.13 waits for keys of the first group
  theirs=$(run_program parallel_ranks.py 2 gloo)
  [[ $(wc -l <<<"$theirs") -eq 10 ]] || fail "FSDP2 and the others over Gloo: $theirs"
  expect "$theirs" "$(run_program parallel_ranks.py 2 argosy)" # two ranks' sums have one order only
  expect "$theirs" "$(run_program parallel_ranks.py 2 argosy ARGOSY_BACKEND=gloo)"
fi
for who in last first; do
  said=$(timeout 120 "$argosy" torchrun --log_dir= --nproc_per_node 3 --no_python sh -c \
    '"$0" "$1" "$2" || [ $? -eq 3 ]' "$python" "$here/backend_ranks.py" "death_of_the_$who" 2>&1 | grep -c ' named$') ||
    fail "nobody named the $who rank, which died"
  expect 2 "$said"
done
echo "PyTorch $("$python" -c 'import torch; print(torch.__version__)'): the backend does what Gloo does"
