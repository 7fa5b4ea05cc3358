#!/usr/bin/env bash
# check_checkpoint.sh ARGOSY_CHECKPOINT GOLDEN: the command as a user types it. argosy-torch lies beside
# it. What the parts do in detail is tested beside their sources.
source "$(dirname "$0")/../check.sh" "argosy checkpoint" "$1"
golden=$2
hash_of() { "$program" hash "$1" 2>/dev/null | cut -d ' ' -f 1; }

expect 0 "Example:" --help
for part in ls verify show hash convert prune; do
  expect 0 "Example: argosy checkpoint $part" "$part" --help
done
expect 2 "Usage: argosy checkpoint"
expect 2 "Did you mean argosy checkpoint verify?" verfy
expect 2 "PATH is required" ls
expect 2 "Did you mean --keep_last?" prune x --keep_lst 2
expect 2 "--keep_last is required" prune x

# From PyTorch's file to all others; one word for the weights, wherever they lie.
runs=$scratch/"my runs"
mkdir "$runs"
pth=$golden/torch_files/model.pth
expect 0 "tensors, hash" convert "$pth" "$scratch/a.safetensors"
expect 0 "tensors, hash" convert "$scratch/a.safetensors" "$runs/first"
expect 0 "tensors, hash" convert "$runs/first" "$scratch/b.pt"
expect 0 "tensors, hash" convert "$runs/first" "$scratch/c.dcp"
[[ -s $scratch/c.dcp/.metadata && -s $scratch/c.dcp/__0_0.distcp ]] || complain "no files of a distributed checkpoint"
expect 1 "it exists already" convert "$runs/first" "$scratch/c.dcp"
word=$(hash_of "$pth")
[[ ${#word} -eq 64 ]] || complain "hash of a .pth: got \"$word\""
for file in "$scratch/a.safetensors" "$runs/first" "$runs" "$scratch/b.pt"; do
  [[ $(hash_of "$file") == "$word" ]] || complain "hash of $file: expected $word, got $(hash_of "$file")"
done
json 'len(j["hash"]) == 64' hash "$pth"
# As docs/reference/checkpoints.md describes it, by nothing but Python.
python=$(python3 -c "
import hashlib, json, struct, sys
data = open(sys.argv[1], 'rb').read()
size = struct.unpack('<Q', data[:8])[0]
digest = hashlib.sha256()
for name, t in sorted(json.loads(data[8:8 + size]).items(), key=lambda item: item[0].encode()):
    if name != '__metadata__':
        begin, end = t['data_offsets']
        digest.update(struct.pack('<Q', len(name.encode())) + name.encode() + t['dtype'].encode() + b'\\0')
        digest.update(struct.pack('<%dQ' % (len(t['shape']) + 1), len(t['shape']), *t['shape']) + data[8 + size + begin:8 + size + end])
print(digest.hexdigest())
" "$scratch/a.safetensors")
[[ $python == "$word" ]] || complain "hash by Python: $python, by us: $word"
expect 0 "10 tensors" convert "$golden/paddle_files/model_4.pdparams" "$runs/second" --rename '_mean$=running_mean'
expect 0 "stay transposed" convert "$golden/paddle_files/model_4.pdparams" "$scratch/kept.pt"
json 'any(t["name"] == "norm.running_mean" for t in j["tensors"])' show "$runs/second"
[[ $(hash_of "$runs/second") != "$word" ]] || complain "other weights have the same hash"
expect 2 "expected PATTERN=REPLACEMENT" convert "$pth" "$scratch/c.pt" --rename x
expect 2 ".pdparams needs the model" convert "$pth" "$scratch/c.pdparams"
expect 2 "unknown model" convert "$pth" "$scratch/c.pdparams" --model resnet19
expect 2 ".onnx is not written" convert "$pth" "$scratch/c.onnx"
expect 1 "No such file" convert "$scratch/none" "$scratch/c.pt"
expect 1 "refused: the global" hash "$golden/torch_files/evil.pth"

expect 0 "first" ls "$runs"
json 'len(j) == 2 and j[0]["state"] == "whole" and j[0]["step"] == 0' ls "$runs"
expect 0 "2 of 2 whole" verify "$runs"
expect 0 "written by argosy" show "$runs/first"
"$program" show "$runs/first" | grep -q "model.safetensors .*xxh3:" || complain "show names no files"

# Damage is found, named, and passed over where the newest is meant.
printf x | dd of="$runs/second/model.safetensors" bs=1 seek=860 conv=notrunc status=none
expect 1 "damaged  $runs/second: model.safetensors: expected the checksum" verify "$runs"
json 'j["ok"] is False and [c["state"] for c in j["checkpoints"]].count("damaged") == 1' verify "$runs"
expect 0 "$word" hash "$runs"
expect 1 "damaged: model.safetensors" hash "$runs/second"
rm "$runs/second/manifest.json"
expect 1 "torn" verify "$runs"
expect 1 "there is no manifest.json" verify "$scratch"
expect 1 "there is no whole checkpoint" show "$scratch"
expect 1 "is a file, and a checkpoint is a folder" show "$0"
expect 1 "No such file" ls "$scratch/none"

# Pruning: what is not whole stays.
expect 0 "tensors" convert "$scratch/b.pt" "$runs/third"
expect 0 "would remove $runs/first" prune "$runs" --keep_last 1 --dry_run
[[ -d $runs/first ]] || complain "a dry run removed something"
json '[p.rsplit("/", 1)[1] for p in j["removed"]] == ["first"] and len(j["left"]) == 1' prune "$runs" --keep_last 1
[[ ! -e $runs/first && -d $runs/third && -d $runs/second ]] || complain "pruning: got $(ls -A "$runs")"
expect 2 "highest" prune "$runs" --keep_last 1 --best worst

expect_full_disk
exit "$failed"
