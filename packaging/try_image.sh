#!/usr/bin/env bash
# Unpacks the image of FOLDER from its archive and starts it as its own configuration says: an ordinary user, in
# namespaces of its own, without a network. Trains the demo there with two processes:
#   packaging/try_image.sh FOLDER
# Needs root, and what scripts/install_deps.sh image names.
set -euo pipefail
fail() { echo "image: $*" >&2; exit 1; }
[[ $# -eq 1 ]] || fail "usage: packaging/try_image.sh FOLDER"
[[ $EUID -eq 0 ]] || fail "packaging/try_image.sh makes namespaces, which needs root"
for tool in umoci runc skopeo jq; do
  command -v "$tool" >/dev/null || fail "there is no $tool. Run first: scripts/install_deps.sh image"
done
archive=$(echo "$1"/argosy-*-oci.tar)
[[ -f $archive ]] || fail "there is no image in $1, or there are several: make image"
scratch=$(mktemp -d /var/tmp/argosy-try-image.XXXXXX)
container=argosy-try-$$
clean_up() {
  if runc state "$container" >/dev/null 2>&1; then
    runc delete --force "$container"
  fi
  rm -rf --one-file-system "$scratch"
}
trap clean_up EXIT
mkdir "$scratch/layout"
tar -xf "$archive" -C "$scratch/layout"
tag=$(umoci ls --layout "$scratch/layout")

# What other tools read: the configuration, and every blob against its digest.
skopeo inspect --config "oci-archive:$archive" >"$scratch/config"
for wanted in '.architecture == "amd64"' '.os == "linux"' '.config.User == "1000:1000"' \
  '.config.Entrypoint == ["argosy"]' '.config.WorkingDir == "/srv/argosy"'; do
  jq -e "$wanted" "$scratch/config" >/dev/null || fail "expected $wanted: $(cat "$scratch/config")"
done
skopeo copy --quiet "oci-archive:$archive" "dir:$scratch/copied"
rm -rf "$scratch/copied"

umoci unpack --image "$scratch/layout:$tag" "$scratch/bundle" >/dev/null
root=$scratch/bundle/rootfs
shopt -s nullglob
places=("$root"/{var/lib/apt/lists,var/cache/apt,etc/apt/sources.list.d,tmp}/* "$root"/etc/ssh/ssh_host_*)
left=$([[ ${#places[@]} -eq 0 ]] || find "${places[@]}" -type f -size +0)
[[ -z $left ]] || fail "it has what it should not: $left"
blas=$(chroot "$root" readlink -f /usr/lib/x86_64-linux-gnu/libblas.so.3)
[[ $blas == */openblas* ]] || fail "its BLAS is $blas"

# run ARGUMENTS...: of the entrypoint, in a fresh container; its output in $output
run() {
  jq '.process.terminal = false | .process.args = ["argosy"] + $ARGS.positional' --args -- "$@" \
    <"$scratch/bundle/config.json" >"$scratch/config.json"
  cp "$scratch/config.json" "$scratch/bundle/config.json"
  local code=0
  output=$(timeout -k 5 300 runc run --bundle "$scratch/bundle" "$container" 2>&1 </dev/null) || code=$?
  [[ $code -eq 0 ]] || { tail -n 20 <<<"$output" >&2; fail "argosy $* ended with code $code"; }
}
run --version
echo "$output in $(du -sm "$root" | cut -f 1) MiB"
run launch --log_dir= -n 1 sh -c 'id -u; ls -A /sys/class/net; touch /usr/x 2>/dev/null || echo "not root"'
[[ $output == *"[rank 0] 1000"*"[rank 0] lo"*"[rank 0] not root"* && $(grep -c '^\[rank 0\]' <<<"$output") -eq 3 ]] ||
  fail "expected user 1000 and no network but the loopback: $output"
started=$(date +%s%N)
run launch --nproc_per_node 2 argosy train --model mnist_cnn --epochs 2 \
  --data fashion_mnist:/usr/share/datasets/fashion-mnist --run_dir runs/demo
accuracy=$(sed -n 's/.*eval_acc: \([0-9.]*\).*/\1/p' <<<"$output" | tail -n 1)
[[ $accuracy == 0.8[5-9]* || $accuracy == 0.9* ]] || fail "the demo ends with accuracy \"$accuracy\": $output"
echo "the demo in the image: accuracy $accuracy after $(( ($(date +%s%N) - started) / 1000000 )) ms"
run doctor --help
owner=$(stat -c %u "$root/srv/argosy/runs/demo")
[[ $owner -eq 1000 ]] || fail "the run's folder belongs to $owner"
