#!/usr/bin/env bash
# check_disk.sh ARGOSY: a training on a real disk that fills up, and on one that nobody can write to. Says
# what is wrong, leaves the last good checkpoint as it is, and goes on from there to the bit.
set -uo pipefail
argosy=$1
fashion=/usr/share/datasets/fashion-mnist
skip() {
  echo "skipped: $*"
  exit 77
}
[[ -e $fashion ]] || skip "no $fashion (package dataset-fashion-mnist)"
if [[ -z ${ARGOSY_TEST_MOUNTS:-} ]]; then
  unshare --user --map-root-user --mount true 2>/dev/null || skip "no mounts of one's own here (unshare --user --mount)"
  ARGOSY_TEST_MOUNTS=1 exec unshare --user --map-root-user --mount "$0" "$@"
fi
work=$(mktemp -d)
disk=$work/disk
trap 'umount "$disk"; rm -rf "$work"' EXIT
mkdir "$disk"
mount -t tmpfs -o size=16m argosy "$disk" || skip "no tmpfs of one's own here"
cd "$work" || exit 1

fail() {
  echo "check_disk: $*" >&2
  exit 1
}
# train CODE WORDS ARGUMENTS…: its exit code, and words that it says.
train() {
  local code=$1 words=$2 rc=0
  shift 2
  "$argosy" train --model lenet --data "fashion_mnist:$fashion,limit=512" --optimizer momentum --augment crop,flip \
    --batch_size 32 --epochs 2 --save_freq 4 --num_workers 1 --verbose 0 "$@" >"$work/out" 2>&1 || rc=$?
  [[ $rc -eq $code ]] || fail "train $*: expected exit code $code, got $rc: $(cat "$work/out")"
  [[ $(cat "$work/out") == *"$words"* ]] || fail "train $*: expected \"$words\", got: $(cat "$work/out")"
}
hash_of() { "$argosy" checkpoint hash "$1" 2>/dev/null | cut -d ' ' -f 1; }
# The newest checkpoint is the one that was there, whole.
is_untouched() {
  [[ -z $(find "$disk/run/checkpoints" -name '.*' -mindepth 1) ]] || fail "after $1: left over: $(ls -A "$disk/run/checkpoints")"
  "$argosy" checkpoint verify "$disk/run/checkpoints" >"$work/verify" 2>&1 || fail "after $1: $(cat "$work/verify")"
  [[ $(hash_of "$disk/run/checkpoints") == "$good" ]] || fail "after $1 the newest checkpoint is another one"
}

train 0 "" --run_dir whole
train 0 "" --run_dir "$disk/run" --num_iters 12
good=$(hash_of "$disk/run/checkpoints")

head -c 64m /dev/zero >"$disk/filler" 2>/dev/null
[[ $(df --output=avail "$disk" | tail -n 1) -eq 0 ]] || fail "the disk is not full"
train 1 "No space left on device (ENOSPC)" --run_dir "$disk/run" --resume auto
echo "a full disk: $(grep -m 1 ENOSPC out)"
is_untouched "a full disk"
truncate -s -256K "$disk/filler" # room for the run's small files, not for a checkpoint
train 1 "[checkpoint.save]" --run_dir "$disk/run" --resume auto
grep -q "No space left on device (ENOSPC)" out || fail "a disk that fills up: $(cat out)"
echo "a disk that fills up: $(grep -m 1 ENOSPC out)"
is_untouched "a disk that fills up"
rm "$disk/filler"

mount -o remount,ro "$disk" || fail "cannot make the disk read-only"
train 1 "Read-only file system (EROFS)" --run_dir "$disk/run" --resume auto
echo "a read-only disk: $(grep -m 1 EROFS out)"
is_untouched "a read-only disk"
"$argosy" evaluate "$disk/run" --verbose 0 >"$work/out" 2>&1 || fail "evaluate on a read-only disk: $(cat out)"
mount -o remount,rw "$disk" || fail "cannot make the disk writable"

train 0 "" --run_dir "$disk/run" --resume auto
[[ $(hash_of "$disk/run/model.pt") == "$(hash_of whole/model.pt)" ]] || fail "resumed, it ends with other weights"
echo "resumed after both: the same weights as without, $(hash_of whole/model.pt)"
