#!/usr/bin/env bash
# resnets.sh PROGRAM: weights that torch.save wrote, in our models, and ours in torchvision's.
set -uo pipefail
program=$1
. "$(dirname "$0")/peer.sh"
needs torchvision
timeout 300 "$python" "$here/resnets.py" "$program"
