#!/usr/bin/env bash
# check_fit_options.sh SOURCE: the guide lists fit()'s options in the order that C++ asks for; so does the struct.
set -euo pipefail
cd "$1"
declared=$(sed -n '/^struct FitOptions {/,/^};/p' argosy/train/options.h |
  sed -nE 's/^  [A-Za-z][A-Za-z0-9_:<>]* ([a-z_]+)( =|\{).*/\1/p' | tr '\n' ' ')
listed=$(tr '\n' ' ' <docs/guides/training.md | grep -oE 'The order of `fit` is [^.]*[.]' | cut -d' ' -f5- | grep -oE '`[a-z_]+`' | tr -d '`' | tr '\n' ' ')
[[ -n $declared && $declared == "$listed" ]] && exit 0
echo "docs/guides/training.md lists fit()'s options as: $listed" >&2
echo "argosy/train/options.h declares them as: $declared" >&2
exit 1
