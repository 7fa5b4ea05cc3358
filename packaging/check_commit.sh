#!/usr/bin/env bash
# Fails unless Debian's packages are built of the commit that is checked out here:
#   packaging/check_commit.sh PACKAGE.deb...
set -euo pipefail
die() { echo "argosy: $*" >&2; exit 1; }
[[ $# -ge 1 ]] || die "usage: packaging/check_commit.sh PACKAGE.deb..."
here=$(git -C "$(dirname "$0")" rev-parse HEAD)
for deb; do
  of=$(dpkg-deb -f "$deb" Argosy-Commit)
  [[ $of == "$here" ]] || die "$deb is built of commit ${of:-unknown}, and here is $here: make deb"
done
