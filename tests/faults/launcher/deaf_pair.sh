#!/usr/bin/env bash
# deaf_pair.sh ARGOSY: three hosts, which are network namespaces on a bridge, all of which reach the first one;
# the other two do not reach each other. `argosy doctor --nodes` names that pair. Exit code 77: skipped.
set -uo pipefail
argosy=$1
net=argosy-deaf-$$
scratch=$(mktemp -d)
clean_up() {
  for i in 1 2 3; do ip netns del "$net-$i" 2>/dev/null; done
  ip netns del "$net" 2>/dev/null
  rm -rf "$scratch"
}
trap clean_up EXIT
make_hosts() {
  ip netns add "$net" && ip -n "$net" link add br0 type bridge && ip -n "$net" link set br0 up || return 1
  for i in 1 2 3; do
    ip netns add "$net-$i" && ip -n "$net-$i" link set lo up &&
      ip -n "$net-$i" link add eth0 type veth peer name "p$i" netns "$net" &&
      ip -n "$net-$i" addr add "10.79.0.$i/24" dev eth0 && ip -n "$net-$i" link set eth0 up &&
      ip -n "$net" link set "p$i" master br0 && ip -n "$net" link set "p$i" up || return 1
  done
  ip -n "$net-2" route add blackhole 10.79.0.3/32
}
make_hosts 2>"$scratch/why" || { echo "skipped: no network namespaces here: $(head -n 1 "$scratch/why")"; exit 77; }
export ARGOSY_TOKEN=secret
for i in 1 2 3; do
  ip netns exec "$net-$i" timeout 60 "$argosy" launch --ips 10.79.0.1,10.79.0.2,10.79.0.3 --log_dir "" \
    "$argosy" doctor --nodes >"$scratch/$i" 2>&1 &
done
wait
for words in "(10.79.0.2, rank 1) cannot reach" "(10.79.0.3, rank 2) cannot reach" "3 looked at, 3 ranks" "exit code 1"; do
  if ! grep -qF -- "$words" "$scratch/1"; then
    echo "expected \"$words\" on the first host, got:"
    cat "$scratch/1"
    exit 1
  fi
done
if grep -qF "(10.79.0.1, rank 0) cannot reach" "$scratch/1"; then
  echo "the first host reaches both others:"
  cat "$scratch/1"
  exit 1
fi
