#!/usr/bin/env bash
# check_estimate.sh ARGOSY: argosy estimate as a user types it. Whether its numbers are true is
# tests/integration/memory's.
source "$(dirname "$0")/../check.sh" argosy "$1"
gpt=(--model gpt:layers=2,width=64,heads=2,vocab_size=300,context=32)
expect 0 "Example: argosy estimate" estimate --help
expect 0 "optimizer's state" estimate "${gpt[@]}"
expect 0 "4 processes" estimate "${gpt[@]}" --mesh dp=2,sharding=2 --batch_size 4 --amp bfloat16 --recompute
expect 0 "room for whole units" estimate "${gpt[@]}" --mesh sharding=4
expect 0 "in forward of head" estimate --model llama3-8b --mesh sharding=64 --sequence_length 1024 --batch_size 1
expect 0 "there is no formula" estimate --model lenet --mesh dp=2 --optimizer momentum
expect 0 '"most": ' estimate "${gpt[@]}" --json
expect 0 "in forward of head" estimate "${gpt[@]}" --mesh sharding=4 --amp pure_bfloat16 --offload_folder /tmp
expect 2 "are about parameters that processes divide" estimate "${gpt[@]}" --mesh dp=2 --amp pure_bfloat16
expect 2 "are about parameters that processes divide" estimate "${gpt[@]}" --mesh sharding=2 --stage 2 --offload_folder /tmp
expect 0 "of virtual ranks, that wait" estimate "${gpt[@]}" --virtual_ranks 6 --mesh dp=2
expect 2 "are about parameters that processes divide" estimate "${gpt[@]}" --offload_folder /tmp
expect 2 "--hosts 3 do not divide" estimate "${gpt[@]}" --mesh sharding=4 --hosts 3
WORLD_SIZE=2 expect 2 "set ARGOSY_BACKEND=gloo" estimate "${gpt[@]}" --hosts 2 --mesh dp=2 --measure
expect 2 "--model is required" estimate
# What argosy train was told, or a run, says it all; the command line has the last word.
echo '{"model": "gpt:layers=2,width=64", "tokenizer": "bytes", "sequence_length": 32, "lr": 0.1, "run_dir": "none"}' \
  >"$scratch/options.json"
json "j['model'].endswith('vocab_size=257,layers=2,width=64,heads=1,context=32') and j['ranks'] == 1" \
  estimate --config "$scratch/options.json"
json "j['ranks'] == 4" estimate --config "$scratch/options.json" --mesh sharding=4 --epochs 3
expect 2 "unknown" estimate --config "$scratch/options.json" --epoch 3
echo '{"models": "gpt"}' >"$scratch/wrong.json"
expect 2 "wrong.json: unknown option --models" estimate --config "$scratch/wrong.json"
expect 2 "needs each axis's number" estimate "${gpt[@]}" --mesh sharding
expect 2 'no axis "pp" yet' estimate "${gpt[@]}" --mesh pp=2
expect 2 "are about language models" estimate --model lenet --recompute
expect 2 'unknown model "resnet19"' estimate --model resnet19
expect 2 "more than the model's context of 32" estimate "${gpt[@]}" --sequence_length 33
expect 2 "argosy launch --nproc_per_node 2" estimate "${gpt[@]}" --mesh dp=2 --measure
exit "$failed"
