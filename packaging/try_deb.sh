#!/usr/bin/env bash
# In a bare root (packaging/root.sh): installs the packages in FOLDER, runs their tests, upgrades and purges them.
#   packaging/try_deb.sh FOLDER    # with the source's packaging/debian, README.md and tests/install in FOLDER/source
set -euo pipefail
folder=$(realpath "$1")
fail() { echo "packages: $*" >&2; exit 1; }
mine() { find "$folder" -maxdepth 1 -name '*.deb' ! -name '*-dbgsym_*'; }

apt-get -qq update

# The launcher alone brings no libtorch, and says what trains.
apt-get -qq install -y --no-install-recommends "$folder"/argosy_*.deb >/tmp/install.log 2>&1 ||
  { tail -n 20 /tmp/install.log >&2; fail "argosy could not be installed alone"; }
! compgen -G '/usr/lib/x86_64-linux-gnu/libtorch_cpu.so*' >/dev/null || fail "argosy alone has brought libtorch"
[[ $(argosy launch --log_dir= -n 2 sh -c 'echo $RANK' | sort | paste -s -d ,) == "[rank 0] 0,[rank 1] 1" ]] || fail "the launcher alone does not start two"
said=$(argosy train --list models 2>&1) && fail "argosy train works without argosy-torch"
[[ $said == *"Debian's package argosy-torch"* ]] || fail "argosy train says: $said"
echo "argosy alone: $(du -shcx /usr | tail -n 1 | cut -f 1) in /usr"

start=$SECONDS
mapfile -t debs < <(mine)
apt-get -qq install -y --no-install-recommends "${debs[@]}" dataset-fashion-mnist >/tmp/install.log 2>&1 ||
  { tail -n 20 /tmp/install.log >&2; fail "they could not be installed"; }
echo "installed with all that they need after $((SECONDS - start)) s, $(du -shcx /usr | tail -n 1 | cut -f 1) in /usr"

# The tests, as autopkgtest runs them, with what they ask for.
cd "$folder/source"
control=packaging/debian/tests/control
read -r -a needed <<<"$(sed -n 's/^Depends: //p' "$control" | tr ',\n' '  ')"
apt-get -qq install -y --no-install-recommends "${needed[@]}" >/tmp/install.log 2>&1
mapfile -t tests < <(sed -n 's/^Test-Command: debian/packaging\/debian/p' "$control")
[[ ${#tests[@]} -eq 2 ]] || fail "$control has ${#tests[@]} tests, not 2"
for test in "${tests[@]}"; do
  AUTOPKGTEST_TMP=$(mktemp -d)
  export AUTOPKGTEST_TMP
  "$test" >/tmp/test.log 2>&1 </dev/null || { tail -n 30 /tmp/test.log >&2; fail "$test failed"; }
  echo "passed: $test ($(tail -n 1 /tmp/test.log))"
done

# The same with a higher version, one package after the other.
for deb in "${debs[@]}"; do
  dpkg-deb -R "$deb" /tmp/newer
  sed -i -E "s/^(Version: .*)/\1+new/; s/\(= ([^)]*)\)/(= \1+new)/g" /tmp/newer/DEBIAN/control
  dpkg-deb -b /tmp/newer "/tmp/$(basename "$deb")" >/dev/null
  rm -r /tmp/newer
done
dpkg -i /tmp/*.deb >/tmp/upgrade.log 2>&1 || { tail -n 20 /tmp/upgrade.log >&2; fail "they could not be upgraded"; }
argosy --version
echo "upgraded: $(dpkg-query -W -f '${Package} ${Version}, ' '*argosy*')"

mapfile -t packages < <(dpkg-query -W -f '${Package}\n' '*argosy*')
apt-get -qq purge -y "${packages[@]}" >/tmp/purge.log 2>&1
left=$(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' | sed -n '/argosy/p') # of all: none of that name is an error
[[ -z $left ]] || fail "still there: $left"
left=$(find / -xdev \( -path /proc -o -path /mnt -o -path /tmp -o -path /root -o -path /var/lib/apt -o -path /var/cache -o -path /var/log \) -prune -o -iname '*argosy*' -print)
[[ -z $left ]] || fail "left behind: $left"
echo "purged, and nothing is left"
