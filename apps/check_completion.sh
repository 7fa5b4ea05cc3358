#!/usr/bin/env bash
# check_completion.sh ARGOSY: what bash would offer after some words.
set -uo pipefail
argosy=$1
source "$(dirname "$0")/completion/argosy.bash"
failed=0
# offers WORD WORDS…: after these words, of which the last is being typed, WORD is offered.
offers() {
  local wanted=$1
  shift
  COMP_WORDS=("$argosy" "$@")
  COMP_CWORD=$#
  COMPREPLY=()
  _argosy
  if [[ " ${COMPREPLY[*]} " != *" $wanted "* ]]; then
    echo "after \"argosy $*\": expected $wanted among: ${COMPREPLY[*]}"
    failed=1
  fi
}
offers train tra
offers launch ""
offers checkpoint c
offers --nproc_per_node launch --nproc
offers --epochs train --ep
offers --label_smoothing train --model lenet --l
offers resnet18 train --model resnet1
offers adamw train --model lenet --optimizer ad
offers cosine train --schedule cos
offers crop train --augment c
offers cifar10 train --data ci
offers auto train --resume a
offers --sheet predict runs/first --s
offers --split evaluate runs/first --s
offers gpt2-medium train --model gpt2
offers tinyllama-1.1b train --model tiny
offers text train --data te
offers sharding train --model gpt --mesh sh
offers --prompt generate --pr
offers mnist_cnn launch --nproc_per_node 2 argosy train --model mnist_
exit "$failed"
