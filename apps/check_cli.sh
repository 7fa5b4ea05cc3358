#!/usr/bin/env bash
# check_cli.sh ARGOSY: the exit codes and words of the command itself; argosy launch has its own tests.
source "$(dirname "$0")/check.sh" argosy "$1"
argosy=$program
expect 0 "Usage: argosy <command>" --help
expect 0 "Usage: argosy <command>" help
expect 0 "argosy 0." --version
expect 0 "--nproc_per_node" launch --help
expect 0 "Usage: argosy paddle-launch [options]" paddle-launch --help
expect 2 "Usage: argosy <command>"
expect 0 "[rank 0] --local_rank=0 a" torch-launch --log_dir "" echo a
expect 0 "[rank 0] a" torch-launch --use_env --log_dir "" echo a
expect 0 "0: a" torchrun --log_dir "" --standalone --nnodes=1 sh -c 'echo $RANK: $1' sh a
expect 2 "Did you mean argosy launch?" lanch
expect 2 "Did you mean argosy --version?" --verison
expect 2 "To start it: argosy launch $argosy" "$argosy"
expect 2 "unknown command argosy -v. See: argosy --help" -v
expect 2 "unknown option --nproc_per_node. A command comes first" --nproc_per_node 2 true
expect 2 "See docs/guides/errors.md#launch.options" launch --nproc_per_node many true
expect 0 "--nnodes=1 stands after the program's name, so it goes to true" launch --log_dir "" true --nnodes=1
expect 127 "Check the path. See docs/guides/errors.md#cannot-start" launch no-such.py
expect 126 "It is a source file: compile it" launch "$(dirname "$0")/argosy.cpp"
expect 2 "docs/guides/errors.md#rendezvous.tls" launch --log_dir "" --tls --nnodes 2 --master 127.0.0.1:1 true
expect 2 "docs/guides/errors.md#launch.json" launch --json /no/such/folder/report.json true
expect 2 "unknown option --rnak. Did you mean --rank? See: argosy logs --help" logs --rnak 1
expect 2 "docs/guides/errors.md#launch.logs" logs /no/such/folder
expect 2 "unknown option --nproc_per_nod. Did you mean --nproc_per_node?" launch --nproc_per_nod 2 true

# Help is read in a terminal of 80 columns.
while read -r words; do
  # shellcheck disable=SC2086
  wide=$("$argosy" $words --help | LC_ALL=C.UTF-8 grep -E '.{81,}') && complain "$words --help is wider: $wide"
done <<'COMMANDS'

launch
paddle-launch
torchrun
logs
doctor
data
data info
data fetch
data verify
data pack
runs
runs ls
runs show
runs compare
checkpoint
checkpoint ls
checkpoint show
checkpoint convert
train
evaluate
predict
generate
estimate
COMMANDS

# What trains alone gets the kernels of what is launched.
mkdir "$scratch/alone"
cp "$argosy" "$scratch/alone/argosy"
printf '#!/bin/sh\necho "kernels: $OPENBLAS_CORETYPE"\n' >"$scratch/alone/argosy-torch"
chmod +x "$scratch/alone/argosy-torch"
for kernels in "" avx2; do
  environment=(env -u OPENBLAS_CORETYPE "ATEN_CPU_CAPABILITY=$kernels")
  alone=$("${environment[@]}" "$scratch/alone/argosy" train)
  launched=$("${environment[@]}" "$argosy" launch -n 1 --log_dir= "$scratch/alone/argosy-torch" 2>/dev/null | sed 's/^.rank 0. //')
  if [[ $alone != "kernels:"* || $alone != "$launched" || ($kernels == avx2 && $alone != *HASWELL) ]]; then
    echo "argosy train: expected what is launched has, \"$launched\", got \"$alone\""
    failed=1
  fi
done

expect_full_disk
ln -s "$(realpath "$argosy")" "$scratch/torchrun"
if ! (cd "$scratch" && ./torchrun --standalone --nproc-per-node=2 --no-python sh -c 'echo $RANK of $WORLD_SIZE') 2>/dev/null |
  grep -q "1 of 2"; then
  echo "a link named torchrun: expected its options to work"
  exit 1
fi
ln -s "$(realpath "$argosy")" "$scratch/fleetrun"
if ! (cd "$scratch" && ./fleetrun echo a && grep -qx a log/workerlog.0) >/dev/null 2>&1; then
  echo "a link named fleetrun: expected Paddle's log/workerlog.0, got: $(find "$scratch")"
  failed=1
fi
exit "$failed"
