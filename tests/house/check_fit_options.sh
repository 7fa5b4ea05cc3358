#!/usr/bin/env bash
# check_fit_options.sh SOURCE: the guide lists fit()'s options in the order that C++ asks for, groups included.
set -euo pipefail
cd "$1"

declared() {  # STRUCT: its fields
  sed -n "/^struct $1 {/,/^};/p" argosy/train/options.h |
    sed -nE 's/^  [A-Za-z][A-Za-z0-9_:<>, ]* ([a-z_]+)( =|\{).*/\1/p' | tr '\n' ' '
}
words() { grep -oE '`[a-z_]+`' | tr -d '`' | tr '\n' ' '; }
same() {  # WHAT DECLARED LISTED
  [[ -n $2 && $2 == "$3" ]] && return
  echo "docs/guides/training.md lists $1 as: $3" >&2
  echo "argosy/train/options.h declares them as: $2" >&2
  exit 1
}

same "fit()'s options" "$(declared FitOptions)" \
  "$(tr '\n' ' ' <docs/guides/training.md | grep -oE 'The order of `fit` is [^.]*[.]' | cut -d' ' -f5- | words)"
for group in Data Checkpoint Log; do
  same "the options of ${group,,}" "$(declared "Fit${group}Options")" \
    "$(sed -nE "s/^\| \`${group,,}\` \| (.*) \|$/\1/p" docs/guides/training.md | words)"
done
