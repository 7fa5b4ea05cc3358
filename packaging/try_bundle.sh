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
glibc=$(ldd --version | sed -n '1s/.* //p')
builds=$(printf '2.36\n%s\n' "$glibc" | sort -V -C && echo yes || echo no) # what a program of one's own needs
[[ $builds == no ]] || apt-get -qq install -y --no-install-recommends cmake make g++ pkg-config >/dev/null 2>&1
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
[[ $2 == yes ]] || exit 0
mv "$HOME/another place/argosy" ~/argosy # pkg-config takes no spaces
. ~/argosy/env.sh
docs=$HOME/argosy/share/doc/argosy
mkdir ~/own && cd ~/own
sed -n '/^```cpp$/,/^```$/p' "$docs/README.md" | sed "1d;/^\`\`\`$/,\$d;s#epoch < 3#epoch < 1#;s#/usr/share#$HOME/argosy/share#" >train.cpp
sed -n '/^```cmake$/,/^```$/p' "$docs/README.md" | sed '1d;/^```$/,$d;/argosy_precompile/d' >CMakeLists.txt
cmake -S . -B build -DCMAKE_BUILD_TYPE=Release >cmake.log && make -C build >make.log 2>&1 || { tail -n 20 cmake.log make.log; exit 1; }
argosy launch --log_dir= -n 2 build/train 2>&1 | grep 'epoch 0'
g++ -O1 train.cpp -o by-pkg-config $(pkg-config --cflags --libs argosy) "-Wl,-rpath,$(pkg-config --variable=libdir argosy)"
[[ -x by-pkg-config ]]
END
chmod 755 /tmp/walk.sh
echo "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), glibc $glibc"
unshare -n bash -c 'ip link set lo up; exec su - someone -c "bash /tmp/walk.sh $0 $1"' "$bundle" "$builds"
