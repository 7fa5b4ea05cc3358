#!/usr/bin/env bash
# Under a real Slurm of two nodes (tests/clusters/slurm_cluster.sh): an ordinary user, whose home the nodes share and
# who has no network but the cluster's, unpacks the bundle there and trains by packaging/slurm/bundle.sh; then by
# packaging/slurm/container.sh, with the root of the image and a stand-in for Apptainer, which Debian 12 does not have:
#   packaging/try_slurm.sh FOLDER IMAGE_FOLDER
# Needs root, and what scripts/install_deps.sh clusters and image name.
set -euo pipefail
cd "$(dirname "$0")/.."
slurm=$PWD/packaging/slurm
fail() { echo "slurm: $*" >&2; exit 1; }
[[ $# -eq 2 ]] || fail "usage: packaging/try_slurm.sh FOLDER IMAGE_FOLDER"
bundle=$(echo "$1"/argosy-*-linux-x86_64.tar.zst)
[[ -f $bundle ]] || fail "there is no bundle in $1, or there are several: make bundle"
archive=$(echo "$2"/argosy-*-oci.tar)
[[ -f $archive ]] || fail "there is no image in $2, or there are several: make image"
bundle=$(realpath "$bundle") archive=$(realpath "$archive")
for tool in zstd umoci shellcheck; do
  command -v "$tool" >/dev/null || fail "there is no $tool. Run first: scripts/install_deps.sh clusters, and image"
done
shellcheck "$slurm"/*.sh

# shellcheck source=tests/clusters/slurm_cluster.sh
. tests/clusters/slurm_cluster.sh
image=$(mktemp -d /var/tmp/argosy-try-slurm.XXXXXX)
clean_up() {
  set +eu # as the cluster's file is written
  cluster_down
  rm -rf --one-file-system "$image"
}
trap clean_up EXIT
id=4242
home=$cluster/home
mkdir "$home"
chown "$id:$id" "$home"
{ cat /etc/passwd && echo "someone:x:$id:$id::$home:/bin/bash"; } >"$cluster/passwd"
{ cat /etc/group && echo "someone:x:$id:"; } >"$cluster/group"
set +eu
cluster_up || fail "there is no Slurm to try it with"
set -eu
as_someone() {
  on_head setpriv --reuid "$id" --regid "$id" --init-groups env -i HOME="$home" USER=someone \
    SLURM_CONF="$cluster/slurm.conf" PATH="$home/bin:/usr/local/bin:/usr/bin:/bin" LC_ALL=C.UTF-8 "$@"
}
for family in -4 -6; do
  routes=$(on_head ip "$family" route show default)
  [[ -z $routes ]] || fail "there is a network: $routes"
done

# batch NAME VARIABLE SCRIPT: submits it as someone, from their home, and says how well it trained
batch() {
  local code=0 accuracy
  as_someone env -C "$home" "$2" timeout 300 sbatch --wait --quiet --cpus-per-task=1 \
    --job-name="$1" --output="$home/$1.out" "$3" || code=$?
  [[ $code -eq 0 ]] || { tail -n 20 "$home/$1.out" >&2; fail "$1 ended with code $code"; }
  accuracy=$(sed -n 's/.*eval_acc: \([0-9.]*\).*/\1/p' "$home/$1.out" | tail -n 1)
  [[ $accuracy == 0.8[5-9]* || $accuracy == 0.9* ]] ||
    { tail -n 20 "$home/$1.out" >&2; fail "$1 ends with accuracy \"$accuracy\""; }
  grep -q 'on node1 (rank 0 of 2, node 0 of 2)' "$home/$1.out" ||
    { head -n 20 "$home/$1.out" >&2; fail "$1 did not run on two nodes"; }
  [[ $(stat -c %u "$home/runs/$1") -eq $id ]] || fail "the run's folder is not someone's"
  echo "$1: accuracy $accuracy, $(grep -o 'finished after [^:]*' "$home/$1.out")"
}
as_someone tar --zstd -xf "$bundle" -C "$home"
unpacked=$(echo "$home"/argosy-*)
batch bundle "ARGOSY_HOME=$unpacked" "$slurm/bundle.sh"

mkdir "$image/layout"
tar -xf "$archive" -C "$image/layout"
umoci unpack --image "$image/layout:$(umoci ls --layout "$image/layout")" "$image/bundle" >/dev/null
chmod 755 "$image" "$image/bundle"
mkdir "$home/bin"
# What Apptainer does by itself: the user, the folders /tmp, /proc, /dev, /sys, home and --bind, and the environment.
cat >"$home/bin/apptainer" <<'END_OF_STAND_IN'
#!/bin/bash
[[ $# -ge 7 && $1 == exec && $2 == --bind && $4 == --pwd && -r $6 ]] ||
  { echo "apptainer: not expected: $*" >&2; exit 2; }
root=$(cat "$6")
exec unshare --user --map-current-user --keep-caps --mount bash -euc '
  mount -t tmpfs tmpfs "$0/mnt"
  for folder in tmp proc dev sys; do mount --rbind "/$folder" "$0/$folder"; done
  for file in hosts passwd; do mount --bind "/etc/$file" "$0/etc/$file"; done
  folder=$1
  shift
  exec /usr/sbin/chroot "$0" env -C "$folder" "$@"' "$root" "$5" "${@:7}"
END_OF_STAND_IN
chmod 755 "$home/bin/apptainer"
echo "$image/bundle/rootfs" >"$home/argosy.sif"
chown -R "$id:$id" "$home/bin" "$home/argosy.sif"
batch container "ARGOSY_SIF=$home/argosy.sif" "$slurm/container.sh"
