#!/usr/bin/env bash
# hosts.sh ARGOSY PROGRAM: PROGRAM (hosts_program) on two hosts, which are network namespaces joined by a link of
# 1 Gbit/s. Code 77 (skipped) where no namespace may be made.
set -uo pipefail
argosy=$1 program=$2
. "$(dirname "$0")/../../support/namespaces.sh"
make_hosts 2
a=${hosts[0]} b=${hosts[1]}
for i in 0 1; do
  tc -n "${hosts[i]}" qdisc add dev "${devices[i]}" root tbf rate 1gbit burst 256kb latency 50ms 2>"$scratch/why" ||
    echo "the link is not shaped: $(head -n 1 "$scratch/why")"
done
export ARGOSY_TOKEN=secret
failed=0
# on_both RANKS_A RANKS_B BACKEND MOST: every host sends at most MOST bytes for each byte of the sum.
on_both() {
  local codes
  ARGOSY_BACKEND=$3 ip netns exec "$a" timeout 60 "$argosy" launch --ips 10.77.0.1,10.77.0.2 -n "$1" --log_dir "" "$program" >"$scratch/a" 2>&1 &
  ARGOSY_BACKEND=$3 ip netns exec "$b" timeout 60 "$argosy" launch --ips 10.77.0.1,10.77.0.2 -n "$2" --log_dir "" "$program" >"$scratch/b" 2>&1
  codes=$?
  wait $!
  codes="$? $codes"
  for side in a b; do
    local sent
    sent=$(sed -n "s/.*hierarchical: this host sent \\([0-9.]*\\) .*/\\1/p;s/.*gloo: this host sent \\([0-9.]*\\) .*/\\1/p" "$scratch/$side")
    echo "$1 + $2 ranks, ${3:-auto}: host $side: $(grep -o '[a-z]*: this host sent.*' "$scratch/$side")"
    if [[ $codes != "0 0" || -z $sent ]] || ! awk "BEGIN { exit !($sent <= $4) }"; then
      echo "expected exit codes 0 0 and at most $4 on host $side, got $codes and:"
      cat "$scratch/a" "$scratch/b"
      failed=1
    fi
  done
}
# 2 (hosts - 1) / hosts is 1 for two hosts; headers and acknowledgements come to some percent.
on_both 2 2 auto 1.1
on_both 3 1 auto 1.1 # host a brings two nodes of the tree of sums, so it adds all: 1.0
on_both 3 5 auto 1.65 # both bring two: 1.5
on_both 2 2 gloo 4
grep -q "^.*hierarchical" "$scratch/a" && { echo "ARGOSY_BACKEND=gloo chose hierarchical"; failed=1; }
on_both 1 1 auto 1.1 # gloo: nobody shares memory
grep -q "gloo: this host" "$scratch/a" || { echo "expected gloo where each host has one rank"; failed=1; }
exit "$failed"
