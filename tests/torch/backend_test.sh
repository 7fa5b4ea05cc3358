#!/usr/bin/env bash
# Compiles the backend against the PyTorch of PYTHON, as pip would, and tries it:
#   tests/torch/backend_test.sh ARGOSY LIBRARY FOLDER [PYTHON]
# ARGOSY is the launcher, LIBRARY libargosy_comm.so. What is compiled stays in FOLDER. PYTHON is Debian's, if none is
# named; "peers" stands for that of make peers, or PEERS.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=torch argosy=$1 library=$2 folder=$3 python=${4:-/usr/bin/python3}
[[ $python != peers ]] || python=${PEERS:-$here/../../.venv-peers/bin/python}
"$python" -c 'import torch, setuptools' 2>/dev/null ||
  { echo "skipped: $python has no torch: scripts/install_deps.sh test, or make peers"; exit 77; }
# shellcheck source=tests/support/python_backend.sh
. "$here/../support/python_backend.sh"

if [[ $python == /usr/bin/python3 ]]; then # with another one pip would fetch a PyTorch of its own
  wanted=$(sed -n 's/^dependencies = \["\(torch[^"]*\)"\].*/\1/p' "$source_root/packaging/torch/pyproject.toml")
  "$python" -W ignore -c 'import pkg_resources, sys; pkg_resources.require(sys.argv[1])' "$wanted" ||
    fail "Debian's PyTorch is not \"$wanted\" for pip"
fi

awk '/^```python$/ { on = 1; next } /^```$/ { on = 0 } on' "$source_root/docs/guides/python.md" >"$scratch/train.py"
timeout 120 "$argosy" torchrun --log_dir= --nproc_per_node 2 --no_python "$python" "$scratch/train.py" >"$scratch/said" ||
  fail "the guide's program does not run: $(cat "$scratch/said")"
[[ $(grep -c '^\[rank [01]\] rank [01]: loss 0\.[0-9]*$' "$scratch/said") -eq 2 ]] || fail "the guide's program says $(cat "$scratch/said")"

expect $'2 compared 66\n1 compared 90' "$(run 3 same_as_gloo)" # the last is the root
expect "3 done" "$(run 3 what_gloo_lacks)"
expect "3 done" "$(run 3 shapes)"
expect "3 done" "$(run 3 shapes ARGOSY_BACKEND=gloo)"
expect "3 done" "$(run 3 several)"
expect "3 done" "$(run 3 parts_of_the_world)"
expect "3 done" "$(run 3 rounded_once)"
expect "3 done" "$(run 3 callbacks)"
expect "2 done" "$(run 2 power_sgd)" # two ranks' sums have one order only
expect "2 done" "$(run 2 records)"
expect "2 done" "$(run 2 records TORCH_DISTRIBUTED_DEBUG=DETAIL)"
expect "2 done" "$(run 2 forked)"
expect "3 named" "$(run 3 hang)"
expect "3 named" "$(run 3 left_out)"
expect "3 done" "$(run 3 any_source)"
expect "2 done" "$(run 2 misuse)"
expect "2 done" "$(run 2 buckets)"
[[ $(run 2 ddp) =~ ^2\ trained\ [-0-9.]+$ ]] || fail "the ranks of a training differ: $(run 2 ddp)"
[[ $(run 3 ddp) =~ ^3\ trained\ [-0-9.]+$ ]] || fail "the ranks of a training differ: $(run 3 ddp)"
bits=$(run 5 bits)
[[ $bits =~ ^5\ bits\  ]] || fail "ranks have different sums: $bits"
expect "$bits" "$(run 5 bits ARGOSY_BACKEND=gloo)"
since() { # 2.6: is that PyTorch this one, or a newer?
  [[ $(printf '%s\n' "$1" "$("$python" -c 'import torch; print(torch.__version__)')" | sort -V | head -n 1) == "$1" ]]
}
if since 2.6; then
  expect "2 done" "$(run 2 again)" # 1.13 waits for keys of the first group
fi
if since 2.9; then
  expect "3 done" "$(run 3 divided)"
  theirs=$(run_program parallel_ranks.py 2 gloo)
  [[ $(wc -l <<<"$theirs") -eq 10 ]] || fail "FSDP2 and the others over Gloo: $theirs"
  expect "$theirs" "$(run_program parallel_ranks.py 2 argosy)" # two ranks' sums have one order only
  expect "$theirs" "$(run_program parallel_ranks.py 2 argosy ARGOSY_BACKEND=gloo)"
fi
other_version PyTorch
death death_of_the_last
death death_of_the_first
echo "PyTorch $("$python" -c 'import torch; print(torch.__version__)'): the backend does what Gloo does"
