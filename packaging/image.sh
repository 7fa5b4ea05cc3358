#!/usr/bin/env bash
# Builds an OCI image of Debian 12 with argosy's packages, and what they need, as argosy-VERSION-oci.tar in a folder:
#   packaging/image.sh DEB_FOLDER OUT
# Needs root, and what scripts/install_deps.sh image names. See docs/design/packages.md.
set -euo pipefail
umask 022
cd "$(dirname "$0")/.."
die() { echo "argosy: $*" >&2; exit 1; }

[[ $# -eq 2 ]] || die "usage: packaging/image.sh DEB_FOLDER OUT"
[[ $EUID -eq 0 ]] || die "packaging/image.sh makes a root of Debian, which needs root"
for tool in mmdebstrap umoci dpkg-scanpackages; do
  command -v "$tool" >/dev/null || die "there is no $tool. Run first: scripts/install_deps.sh image"
done
version=$(sed -n 's/^project(argosy VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
commit=$(git describe --always --dirty)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)
mkdir -p "$2"
out=$(realpath "$2")
scratch=$(mktemp -d /var/tmp/argosy-image.XXXXXX)
chmod 755 "$scratch" # for apt, which reads as a user of its own
trap 'rm -rf --one-file-system "$scratch"' EXIT

# Our packages as a source of apt, beside this machine's own sources for Debian 12, security included.
mkdir "$scratch/debs"
for package in argosy argosy-torch; do
  deb=("$1/${package}_$version"-*.deb)
  [[ ${#deb[@]} -eq 1 && -f ${deb[0]} ]] || die "expected one package $package of $version in $1: make deb"
  packaging/check_commit.sh "${deb[0]}"
  cp "${deb[0]}" "$scratch/debs"
done
(cd "$scratch/debs" && dpkg-scanpackages --multiversion . >Packages 2>/dev/null)
# shellcheck disable=SC2016 # apt's own words
apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' \
  'Component: main' | sed -nE '/ bookworm(-updates|-security)? /p' | sort -u >"$scratch/debian.list"
[[ -s $scratch/debian.list ]] || die "apt knows no source of Debian 12 here: apt-get update"
! grep -q '://[^/ ]*@' "$scratch/debian.list" || die "apt's sources have a password, and the image would have it too"
{ cat "$scratch/debian.list"; echo "deb [trusted=yes] copy://$scratch/debs ./"; } >"$scratch/all.list"
apt-config dump | sed -nE '/^Acquire::(https?|Check-|Retries)/p' >"$scratch/host.conf"

# The SBOM, of what apt has installed, and of what our packages have built in.
list=$(packaging/sbom.py --format)

# What a slim image leaves out: pages and translations, but no licence. Of apt's lists nothing is left.
options=(--aptopt="$scratch/host.conf")
for path in '/usr/share/man/*' '/usr/share/locale/*' '/usr/share/info/*' '/usr/share/lintian/*' '/usr/share/doc/*'; do
  options+=(--dpkgopt="path-exclude=$path")
done
# Some runtimes mount hosts and resolv.conf only over files that are there.
# sshd is there for MPIJobs (packaging/kubernetes/mpijob.yaml); keys that an image has would be everybody's.
# shellcheck disable=SC2016 # the hooks' own words
mmdebstrap --variant=apt --mode=root --quiet --format=tar "${options[@]}" \
  --dpkgopt='path-include=/usr/share/doc/*/copyright' \
  --include="argosy argosy-torch libopenblas0-openmp dataset-fashion-mnist ca-certificates" \
  --include="openssh-client openssh-server" \
  --customize-hook='chroot "$1" useradd --uid 1000 --home-dir /srv/argosy --create-home --shell /bin/bash argosy' \
  --customize-hook='rm -f "$1"/etc/ssh/ssh_host_* "$1"/etc/apt/apt.conf.d/99mmdebstrap "$1"/etc/hostname' \
  --customize-hook='echo "127.0.0.1 localhost" >"$1/etc/hosts"; : >"$1/etc/resolv.conf"' \
  --customize-hook="rm -f \"\$1\"/etc/apt/sources.list.d/*; cp '$scratch/debian.list' \"\$1/etc/apt/sources.list\"" \
  --customize-hook="dpkg-query --root=\"\$1\" -W -f '$list' >'$scratch/packages'" \
  --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*' \
  --customize-hook='rm -rf "$1"/var/cache/debconf/*-old "$1"/var/lib/dpkg/*-old' \
  bookworm "$scratch/root.tar" "$scratch/all.list" >"$out/build.log" 2>&1 ||
  { tail -n 20 "$out/build.log" >&2; die "the root could not be made: $out/build.log"; }

layout=$scratch/layout
image=$layout:$version
umoci init --layout "$layout"
umoci new --image "$image"
umoci raw add-layer --image "$image" --history.created "$created" --history.created_by "packaging/image.sh" \
  "$scratch/root.tar"
umoci config --image "$image" --no-history --created "$created" --architecture amd64 --os linux \
  --config.user 1000:1000 --config.workingdir /srv/argosy --config.entrypoint argosy --config.cmd --help \
  --config.env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --config.env LANG=C.UTF-8 \
  --manifest.annotation "org.opencontainers.image.title=argosy" \
  --manifest.annotation "org.opencontainers.image.version=$version" \
  --manifest.annotation "org.opencontainers.image.revision=$commit" \
  --manifest.annotation "org.opencontainers.image.created=$created" \
  --manifest.annotation "org.opencontainers.image.licenses=Apache-2.0"
umoci gc --layout "$layout" >/dev/null
archive=$out/argosy-$version-oci.tar
tar --sort=name --mode=u=rwX,go=rX --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
  -C "$layout" -c . >"$archive.new"
mv "$archive.new" "$archive"
packaging/sbom.py --packages "$scratch/packages" --version "$version" --commit "$commit" --out "$out/sbom.json" >>"$out/build.log"
size=$(stat -c %s "$archive")
unpacked=$(stat -c %s "$scratch/root.tar")
echo "argosy: built $2/$(basename "$archive"): $((size / 1000000)) MB, unpacked $((unpacked / 1048576)) MiB"
