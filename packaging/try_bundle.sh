#!/usr/bin/env bash
# In a bare root (packaging/root.sh): unpacks the bundle of FOLDER as an ordinary user without network, trains its demo,
# and uses its commands, from another folder and by another name too:
#   packaging/try_bundle.sh FOLDER
set -euo pipefail
folder=$(realpath "$1")
fail() { echo "bundle: $*" >&2; exit 1; }
bundle=$(echo "$folder"/argosy-*-linux-x86_64.tar.zst)
[[ -f $bundle ]] || fail "there is no bundle in $folder, or there are several: make bundle"
apt-get -qq update -o APT::Update::Error-Mode=any || fail "apt-get update failed"
# What the README says that it needs: zstd, which tar calls. The other one is for the walk.
apt-get -qq install -y --no-install-recommends zstd iproute2 >/tmp/install.log 2>&1 ||
  { tail -n 20 /tmp/install.log >&2; fail "apt-get could not install zstd iproute2"; }
glibc=$(ldd --version | sed -n '1s/.* //p')
builds=$(printf '2.36\n%s\n' "$glibc" | sort -V -C && echo yes || echo no) # what a program of one's own needs
id someone >/dev/null 2>&1 || useradd -m someone
cat >/tmp/walk.sh <<'END'
set -euo pipefail
trap 'echo "the walk ends at line $LINENO: $BASH_COMMAND" >&2' ERR
cd
started=$(date +%s%N)
tar --zstd -xf "$1"
home=$(echo argosy-*)
"$home"/demo.sh >demo.log 2>&1 || { tail -n 20 demo.log >&2; exit 1; }
echo "from tar to the trained model: $(( ($(date +%s%N) - started) / 1000000 )) ms"
accuracy=$(sed -n 's/.*eval_acc: \([0-9.]*\).*/\1/p' demo.log | tail -n 1)
[[ $accuracy == 0.8[5-9]* || $accuracy == 0.9* ]] || { echo "the demo ends with accuracy \"$accuracy\""; exit 1; }
echo "accuracy $accuracy"
mkdir 'a:b' && mv "$home" 'a:b/argosy' # where the loader divides a list of folders
[[ $(a:b/argosy/bin/argosy runs ls runs) == *demo* ]]
! . a:b/argosy/env.sh 2>/dev/null || { echo "env.sh puts a folder with a colon into PATH"; exit 1; }
mv 'a:b/argosy' "$home"
mkdir 'another place'
mv "$home" 'another place/argosy'
mkdir ~/elsewhere && cd ~/elsewhere
ln -s "$HOME/another place/argosy/demo.sh" ~/demo
export CDPATH=$HOME:/ # with which cd says where it goes
[[ $(~/demo --help) == *"demo.sh [RUN_DIR [OPTIONS]]"* && ! -e ./--help ]] || { echo "demo.sh --help"; exit 1; }
~/demo ~/runs/demo --resume auto >resumed.log 2>&1 || { tail -n 20 resumed.log; exit 1; }
grep -q "nothing is left to do" resumed.log && [[ ! -e ~/runs/demo/earlier-1 ]] || { echo "not resumed"; tail resumed.log; exit 1; }
(cp "$HOME/another place/argosy/env.sh" . && ! . ./env.sh 2>/dev/null) || { echo "env.sh finds what is not there"; exit 1; }
. "$HOME/another place/argosy/env.sh"
[[ $(command -v argosy) == "$HOME/another place/argosy/bin/argosy" ]]
argosy --version
[[ $(argosy checkpoint hash ~/runs/demo | cut -d ' ' -f 1 | tr -d '\n' | wc -c) -eq 64 ]]
argosy evaluate ~/runs/demo --data "fashion_mnist:$HOME/another place/argosy/share/datasets/fashion-mnist" >evaluated.log 2>&1
grep -q "acc: $accuracy" evaluated.log || { cat evaluated.log; exit 1; }
argosy runs ls ~/runs
argosy data info fashion_mnist >/dev/null
[[ $(argosy runs show ~/runs/demo) != *ld-linux* ]] || { argosy runs show ~/runs/demo; exit 1; }
argosy doctor >~/doctor.log || [[ $? -eq 1 ]]
grep training ~/doctor.log
grep -q 'training .*equal weights' ~/doctor.log || { cat ~/doctor.log; exit 1; }
said=$(argosy torchrun --nproc_per_node 2 --no_python sh -c 'echo "rank $RANK of $WORLD_SIZE"' 2>/dev/null | sort)
[[ $said == "[rank 0] rank 0 of 2"$'\n'"[rank 1] rank 1 of 2" ]] || { echo "$said"; exit 1; }
END
cat >/tmp/own.sh <<'END'
set -euo pipefail
trap 'echo "the walk ends at line $LINENO: $BASH_COMMAND" >&2' ERR
mv "$HOME/another place/argosy" ~/argosy # pkg-config takes no spaces
. ~/argosy/env.sh
docs=$HOME/argosy/share/doc/argosy
mkdir ~/own && cd ~/own
sed -n '/^```cpp$/,/^```$/p' "$docs/README.md" | sed "1d;/^\`\`\`$/,\$d;s#epoch < 3#epoch < 1#;s#/usr/share#$HOME/argosy/share#" >train.cpp
sed -n '/^```cmake$/,/^```$/p' "$docs/README.md" | sed '1d;/^```$/,$d;/argosy_precompile/d' >CMakeLists.txt
cmake -S . -B build -DCMAKE_BUILD_TYPE=Release >cmake.log && make -C build >make.log 2>&1 || { tail -n 20 cmake.log make.log; exit 1; }
argosy launch --log_dir= -n 2 build/train 2>&1 | grep 'epoch 0'
g++ -O1 train.cpp -o by-pkg-config $(pkg-config --cflags --libs argosy)
argosy launch --log_dir= -n 2 ./by-pkg-config 2>&1 | grep 'epoch 0'
said=$(LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libstdc++.so.6 argosy checkpoint hash ~/runs/demo 2>&1)
[[ $said == *"without LD_PRELOAD"*"$HOME/runs/demo"* ]] || { echo "$said"; exit 1; }
. /usr/share/modules/init/bash
export PATH=/usr/bin:/bin
module use ~/argosy/share/modulefiles
module load argosy
[[ $(command -v argosy) == "$HOME/argosy/bin/argosy" ]]
echo "a program of one's own, and the module"
END
chmod 755 /tmp/walk.sh /tmp/own.sh
echo "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), glibc $glibc"
as_someone() { unshare -n bash -c 'ip link set lo up; exec su - someone -c "bash $0 $1"' "$1" "$bundle"; }
as_someone /tmp/walk.sh
# What the system has now is not what the walk above could have leant on.
[[ $builds == yes ]] || exit 0
apt-get -qq install -y --no-install-recommends cmake make g++ pkg-config environment-modules >/dev/null 2>&1
as_someone /tmp/own.sh
