#!/usr/bin/env bash
# NVIDIA's libraries beside what we declare of them, as far as that shows without a GPU.
# NCCL_LIBRARIES: files; without, the one that .venv-peers or PEERS brings; 77 (skipped) where there is none.
set -euo pipefail
program=$1
cd "$(dirname "$0")/../.."
venv=${PEERS:-.venv-peers}
read -ra libraries <<<"${NCCL_LIBRARIES:-}"
((${#libraries[@]})) || libraries=("$venv"/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2)
[[ -e ${libraries[0]} ]] || { echo "no libnccl.so.2 (make peers)"; exit 77; }
exec "$program" "${libraries[@]}"
