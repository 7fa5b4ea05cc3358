#!/usr/bin/env bash
# In a bare root (packaging/root.sh): unpacks the bundle of FOLDER as an ordinary user without network, trains its demo,
# and uses its commands, from another folder and by another name too:
#   packaging/try_bundle.sh FOLDER
set -euo pipefail
folder=$(realpath "$1")
fail() { echo "bundle: $*" >&2; exit 1; }
bundle=$(echo "$folder"/argosy-*-linux-x86_64.tar.zst)
[[ -f $bundle ]] || fail "there is no bundle in $folder, or there are several: make bundle"
apt-get -qq update
apt-get -qq install -y --no-install-recommends zstd iproute2 >/dev/null 2>&1
id someone >/dev/null 2>&1 || useradd -m someone
cat >/tmp/walk.sh <<'END'
set -euo pipefail
cd
started=$(date +%s%N)
tar --zstd -xf "$1"
home=$(echo argosy-*)
"$home"/demo.sh >demo.log 2>&1 || { tail -n 20 demo.log >&2; exit 1; }
echo "from tar to the trained model: $(( ($(date +%s%N) - started) / 1000000 )) ms"
grep -o 'eval_acc: [0-9.]*' demo.log | tail -n 1
mkdir 'another place'
mv "$home" 'another place/argosy'
cd /tmp
. "$HOME/another place/argosy/env.sh"
[[ $(command -v argosy) == "$HOME/another place/argosy/bin/argosy" ]]
argosy --version
[[ $(argosy checkpoint hash ~/runs/demo | cut -d ' ' -f 1 | tr -d '\n' | wc -c) -eq 64 ]]
argosy evaluate ~/runs/demo --data "fashion_mnist:$HOME/another place/argosy/share/datasets/fashion-mnist" 2>&1 | tail -n 1
argosy runs ls ~/runs
argosy data info "$HOME/another place/argosy/share/datasets/fashion-mnist" >/dev/null
argosy doctor >~/doctor.log || [[ $? -eq 1 ]]
grep training ~/doctor.log
grep -q 'training .*equal weights' ~/doctor.log || { cat ~/doctor.log; exit 1; }
argosy torchrun --nproc_per_node 2 --no_python sh -c 'echo "rank $RANK of $WORLD_SIZE"'
END
chmod 755 /tmp/walk.sh
echo "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), glibc $(ldd --version | sed -n '1s/.* //p')"
unshare -n bash -c 'ip link set lo up; exec su - someone -c "bash /tmp/walk.sh $0"' "$bundle"
