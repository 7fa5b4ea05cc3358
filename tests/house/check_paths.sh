#!/usr/bin/env bash
# No file of the project names a folder of somebody's machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
git rev-parse --git-dir >/dev/null 2>&1 || { echo "not a git checkout: nothing to check"; exit 0; }
# Built from pieces so that this file does not find itself.
pattern="(^|[^A-Za-z0-9_.~])/(wor""k|ho""me|ro""ot|Use""rs)/[A-Za-z0-9_.]"
found=0
git grep -nIE "$pattern" -- . ':!LICENSE' || found=$?
case $found in
  0) echo "absolute paths of a machine (above): use a relative path, an option or a variable" >&2; exit 1 ;;
  1) ;;
  *) echo "git grep failed with exit code $found" >&2; exit 1 ;;
esac
