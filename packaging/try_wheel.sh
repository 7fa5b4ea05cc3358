#!/usr/bin/env bash
# In a bare root (packaging/root.sh): installs the wheel of FOLDER with pip, as an ordinary user without network, and starts
# Python programs with it:
#   packaging/try_wheel.sh FOLDER
set -euo pipefail
folder=$(realpath "$1")
fail() { echo "wheel: $*" >&2; exit 1; }
wheel=$(echo "$folder"/argosy-*.whl)
[[ -f $wheel ]] || fail "there is no wheel in $folder, or there are several: make wheel"
apt-get -qq update -o APT::Update::Error-Mode=any || fail "apt-get update failed"
apt-get -qq install -y --no-install-recommends python3-venv iproute2 >/tmp/install.log 2>&1 ||
  { tail -n 20 /tmp/install.log >&2; fail "apt-get could not install python3-venv iproute2"; }
id someone >/dev/null 2>&1 || useradd -m someone
cat >/tmp/walk.sh <<'END'
set -euo pipefail
trap 'echo "the walk ends at line $LINENO: $BASH_COMMAND" >&2' ERR
cd
python3 -m venv env
env/bin/pip install --quiet --no-index --disable-pip-version-check "$1"
mkdir -p other/argosy/backend
echo 'name = "found"' >other/argosy/backend/__init__.py # as argosy.torch, in a folder of its own
[[ $(PYTHONPATH=other env/bin/python3 -c 'import argosy.backend; print(argosy.backend.name)') == found ]]
cat >hello.py <<'PY'
import os, sys
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], "in", os.path.dirname(os.path.dirname(sys.executable)))
PY
for torchrun in "env/bin/argosy torchrun" "env/bin/python -m argosy torchrun"; do # no environment is active
  said=$($torchrun --standalone --nproc_per_node 1 hello.py 2>/dev/null)
  [[ $said == "[rank 0] rank 0 of 1 in $HOME/env" ]] || { echo "$torchrun: $said"; exit 1; }
done
mkdir -p base/site
env/bin/pip install --quiet --no-index --disable-pip-version-check --target base/site "$1"
for way in "PYTHONPATH=base/site python3" "env/bin/python"; do # of another folder, and of an environment above this one
  [[ $(env $way -m argosy --version) == "$(env/bin/argosy --version)" ]] || { echo "$way -m argosy"; exit 1; }
done
python3 -m venv above
readlink -f env/lib/python3*/site-packages >"$(echo above/lib/python3*/site-packages)/below.pth"
[[ $(above/bin/python -m argosy --version) == "$(env/bin/argosy --version)" ]] || { echo "from above"; exit 1; }
export PATH=$HOME/env/bin:$PATH
argosy --version
[[ $(python3 -m argosy --version) == "$(argosy --version)" ]]
said=$(argosy torchrun --standalone --nproc_per_node 2 hello.py 2>/dev/null | sort)
[[ $said == "[rank 0] rank 0 of 2 in $HOME/env"$'\n'"[rank 1] rank 1 of 2 in $HOME/env" ]] || { echo "$said"; exit 1; }
argosy paddle-launch --nproc_per_node 2 hello.py >/dev/null 2>&1
grep -q 'rank 1 of 2' log/workerlog.1
echo 'import os; raise SystemExit(int(os.environ["RANK"]) * 3)' >failing.py
argosy torchrun --nproc_per_node 2 failing.py >said 2>&1 && exit 1
grep -q 'rank 1 .* exited with code 3' said || { cat said; exit 1; }
argosy torchrun --nproc_per_node 1 nowhere.py >said 2>&1 && exit 1
page=$(sed -n 's/.* See \(.*\)#.*/\1/p' said)
[[ -f $page ]] || { echo "a message names $page, which is not there"; exit 1; }
started=$(date +%s%N)
for _ in 1 2 3 4 5 6 7 8 9 10; do argosy launch --log_dir= true 2>/dev/null; done
echo "argosy launch true: $(( ($(date +%s%N) - started) / 10000000 )) ms"
env/bin/pip uninstall --quiet -y argosy
left=$(find env -path '*argosy*' ! -type d) # Debian 11's pip leaves an empty folder
[[ -z $left ]] || { echo "left behind: $left"; exit 1; }
END
chmod 755 /tmp/walk.sh
echo "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), $(python3 --version)"
unshare -n bash -c 'ip link set lo up; exec su - someone -c "bash /tmp/walk.sh $0"' "$wheel"
