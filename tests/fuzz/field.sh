#!/usr/bin/env bash
# field.sh FILE FIELD: the words that the comment at the head of a fuzz target gives for "fuzz-FIELD:", wherever its lines
# break.
set -euo pipefail
sed -n '/^\/\//!q; s|^// *||p' "$1" | tr '\n' ' ' | { grep -oP "fuzz-$2: *\K.*?(?= *(fuzz-[a-z]+:|$))" || true; } | tr '\n' ' '
