#!/usr/bin/env bash
# check_estimate.sh ARGOSY: argosy estimate as a user types it. Whether its numbers are true is
# tests/integration/memory's.
source "$(dirname "$0")/../check.sh" argosy "$1"
gpt=(--model gpt:layers=2,width=64,heads=2,vocab_size=100,context=32)
expect 0 "Example: argosy estimate" estimate --help
expect 0 "optimizer's state" estimate "${gpt[@]}"
expect 0 "4 processes" estimate "${gpt[@]}" --mesh dp=2,sharding=2 --batch_size 4 --amp bfloat16 --recompute
expect 0 "room for whole units" estimate "${gpt[@]}" --mesh sharding=4
expect 0 "in forward of head" estimate --model llama3-8b --mesh sharding=64 --sequence_length 1024
expect 0 "there is no formula" estimate --model lenet --mesh dp=2 --optimizer momentum
expect 0 '"most": ' estimate "${gpt[@]}" --json
expect 0 "in backward of" estimate "${gpt[@]}" --mesh sharding=4 --amp pure_bfloat16 --offload_folder /tmp
expect 2 "are about parameters that processes divide" estimate "${gpt[@]}" --mesh dp=2 --amp pure_bfloat16
expect 2 "are about parameters that processes divide" estimate "${gpt[@]}" --mesh sharding=2 --stage 2 --offload_folder /tmp
expect 2 "--model" estimate
expect 2 "needs each axis's number" estimate "${gpt[@]}" --mesh sharding
expect 2 'no axis "pp" yet' estimate "${gpt[@]}" --mesh pp=2
expect 2 "are about language models" estimate --model lenet --recompute
expect 2 'unknown model "resnet19"' estimate --model resnet19
expect 2 "one sequence or more, of 1 to 32 tokens" estimate "${gpt[@]}" --sequence_length 33
expect 2 "argosy launch --nproc_per_node 2" estimate "${gpt[@]}" --mesh dp=2 --measure
exit "$failed"
