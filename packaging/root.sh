#!/usr/bin/env bash
# Runs a command in a fresh root of a release of Debian, for example bookworm, and removes the root afterwards:
#   packaging/root.sh RELEASE FOLDER -- COMMAND...
# FOLDER is /mnt there, to read and to write. The command has this machine's network, and a process namespace and mounts
# of its own, which end with it. Needs root, and debootstrap. Roots are kept as build/roots/RELEASE.tar.
set -euo pipefail
umask 022 # what is copied into the root is for its users
cd "$(dirname "$0")/.."
die() { echo "argosy: $*" >&2; exit 1; }

[[ $# -ge 4 && $3 == -- ]] || die "usage: packaging/root.sh RELEASE FOLDER -- COMMAND..."
[[ $EUID -eq 0 ]] || die "packaging/root.sh makes a root of Debian, which needs root"
command -v debootstrap >/dev/null || die "run first: scripts/install_deps.sh deb"
release=$1 folder=$(realpath "$2")
shift 3
kept=build/roots/$release.tar
root=$(mktemp -d /var/tmp/argosy-root.XXXXXX)
chmod 755 "$root" # for apt, which fetches as a user of its own
trap 'rm -rf --one-file-system "$root"' EXIT

# This machine's own mirror, for a root of another release too.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 'Component: main' | head -n 1)
[[ -n $mirror ]] || die "apt knows no mirror yet: apt-get update"
if [[ ! -e $kept ]]; then
  mkdir -p build/roots
  eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
  export http_proxy=${http_proxy-}
  debootstrap --variant=minbase --include=ca-certificates "$release" "$root" "$mirror" >"build/roots/$release.log" 2>&1 ||
    die "debootstrap failed: see build/roots/$release.log"
  rm -f "$root"/var/cache/apt/archives/*.deb
  tar -c -C "$root" -f "$kept.$$" .
  mv "$kept.$$" "$kept"
else
  tar -x -C "$root" -f "$kept"
fi
echo "deb $mirror $release main" >"$root/etc/apt/sources.list"
apt-config dump | sed -nE '/^Acquire::(https?|Check-|Retries)/p' >"$root/etc/apt/apt.conf.d/00host"
for file in resolv.conf hosts ssl/certs/ca-certificates.crt; do
  [[ ! -e /etc/$file ]] || cp -L --remove-destination "/etc/$file" "$root/etc/$file"
done
# In the background, so that a signal ends what runs there before the root is removed.
unshare --mount --pid --fork --kill-child --uts --ipc bash -euo pipefail -c '
  mount --make-rprivate /
  mount -t proc proc "$0/proc"
  mount --rbind /dev "$0/dev"
  mount --bind "$1" "$0/mnt"
  mount -t tmpfs tmpfs "$0/dev/shm"
  shift
  exec chroot "$0" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"
' "$root" "$folder" "$@" <&0 &
child=$!
trap 'kill -KILL "$child" 2>/dev/null; wait "$child" 2>/dev/null || true; exit 143' HUP INT TERM
wait "$child"
