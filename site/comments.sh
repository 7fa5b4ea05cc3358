#!/usr/bin/env bash
# site/comments.sh HEADER: its comments as doxygen wants them. A /// comment that stands alone, before an empty line, is
# about the header; the words that CONTRIBUTING.md names begin paragraphs; signs that doxygen would take for HTML or a
# command are escaped.
set -euo pipefail
here=$(dirname "$0")
awk '
  /^\/\/\// { block = block $0 "\n"; next }
  block != "" { if ($0 == "") printf "/// @file\n"; printf "%s", block; block = "" }
  { print }
  END { printf "%s", block }' "$1" | sed -E -f "$here/comments.sed"
