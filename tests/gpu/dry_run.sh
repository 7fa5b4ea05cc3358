#!/usr/bin/env bash
# run.sh on stand-ins for a GPU: every program starts and prints its figures, and table.py makes its table of them.
#     dry_run.sh PROGRAMS OUT      # PEERS: a Python with torch; without, PyTorch's part is left out
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$2
parts=(tests doctor nccl ranks exact copies input gpt steps)
venv=$here/../../.venv-peers/bin/python
[ ! -x "$venv" ] || export PEERS=${PEERS:-$venv}
"$here/run.sh" --dry "$1" "$out" "${parts[@]}" | tee "$out.log" || { echo "dry_run.sh: run.sh failed; see $out"; exit 1; }

missing=0
expect() { grep -Eq "$1" "$out.log" || { echo "dry_run.sh: no line like: $1"; missing=1; }; }
for part in "${parts[@]}"; do
  expect "^== $part: passed \([0-9]+ s\)$"
  expect "^parts: .*$part passed"
  case $part in
    tests) for program in devices_test devices_input_test app_doctor_torch_test; do
      expect "^$program: \[  PASSED  \] [1-9]"
    done ;;
    doctor) expect '^ +GPUs +none visible' && expect '^doctor .*"libtorch"' ;;
    nccl) expect '^NCCL 2\.' ;;
    ranks) expect '^nccl_conformance: [1-9][0-9]* cases passed' && expect '^devices_processes_test: \[  PASSED  \] 1 ' &&
      expect '^argosy train of 4 virtual ranks on 1, 2 and 3 processes: ([0-9a-f]+) \1 \1$' ;;
    copies) expect '^  copy on the device +[0-9.]+ \[' && expect '^goal: exact: sum of 8 bf16 beside a copy .*(met|missed)$' ;;
    input) expect '^  argosy +[0-9.]+ \[' && expect '^  f32, pictures read meanwhile +argosy +[0-9.]+ \[' ;;
    gpt) expect '^  gpt, f32 +argosy +[0-9.]+ \[' ;;
    steps) expect '^  f32 +argosy +[0-9.]+ \[' ;;
  esac
done
exit $missing
