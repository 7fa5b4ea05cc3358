#!/usr/bin/env bash
# train.sh ARGOSY TRAINER NCCL: argosy train on two ranks with a device each comes to the weights of two ranks on the
# CPU. TRAINER is argosy-torch with the second device, whose kernels round as the CPU's; NCCL is the fake one. What is
# printed is a transcript for docs/guides/accelerators.md.
set -u
argosy=$1 trainer=$2 nccl=$3
fashion=/usr/share/datasets/fashion-mnist
if [[ ! -e $fashion ]]; then
  echo "skipped: no $fashion (package dataset-fashion-mnist)"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
failed=0
complain() {
  echo "FAILED: $*" >&2
  failed=1
}
# train NAME OPTIONS…: prints what it says; the weights' hash goes to NAME.hash.
train() {
  local name=$1
  shift
  "$argosy" launch -n 2 --log_dir "" "${launch[@]}" "$trainer" train --model lenet --data "fashion_mnist:$fashion,limit=256" \
    --batch_size 16 --num_iters 6 --run_dir "$name" --memory_format contiguous --num_workers 1 "$@" \
    >"$name.out" 2>&1 || complain "$name: exit $?: $(tail -n 5 "$name.out")"
  "$trainer" checkpoint-hash "$name/model.pt" | cut -d' ' -f1 >"$name.hash"
}

launch=()
train cpu --device cpu
export ARGOSY_NCCL_LIBRARY=$nccl ARGOSY_NCCL_MODE=exact
launch=(--env ARGOSY_LOG=info)
train first --device auto
cat first.out
grep -q "2 processes on [a-z]*:" first.out || complain "no line names the devices"
grep -q "tensors of devices by NCCL" first.out || complain "no line names the library"
[[ -s cpu.hash ]] && cmp -s cpu.hash first.hash ||
  complain "the weights on the CPU are $(cat cpu.hash), those on devices $(cat first.hash)"
# Two ranks that see one device: through the host, and a line says why.
zero=$(grep -ohE '"device": ?"[a-z]+:0"' first/*.json | grep -oE '[a-z]+:0' | head -n 1)
train one_device --device "$zero"
grep -q "are on one device of their host" one_device.out || complain "two ranks on one device: $(cat one_device.out)"
cmp -s cpu.hash one_device.hash || complain "the weights on one device are $(cat one_device.hash)"
exit $failed
