#!/usr/bin/env bash
# two_hosts.sh ARGOSY: launchers on two hosts, which are network namespaces. Exit code 77 (skipped) where no namespace
# may be made.
set -uo pipefail
argosy=$1
. "$(dirname "$0")/../../support/namespaces.sh"
make_hosts 2
a=${hosts[0]} b=${hosts[1]}
export ARGOSY_TOKEN=secret
failed=0

# both OPTIONS_A OPTIONS_B SCRIPT: the same job on both hosts; exit codes in codes, output in $scratch/a, b.
both() {
  ip netns exec "$a" timeout 20 "$argosy" launch $1 --log_dir "" sh -c "$3" >"$scratch/a" 2>&1 &
  local first=$!
  ip netns exec "$b" timeout 20 "$argosy" launch $2 --log_dir "" sh -c "$3" >"$scratch/b" 2>&1
  local second=$?
  wait "$first"
  codes="$? $second"
}
# expect CODES FILE WORDS: after both
expect() {
  if [[ $codes != "$1" ]] || ! grep -qF -- "$3" "$scratch/$2"; then
    echo "expected exit codes $1 and \"$3\" on host $2, got $codes and:"
    cat "$scratch/a" "$scratch/b"
    failed=1
  fi
}

list="--ips 10.77.0.1,10.77.0.2"
both "$list -n 1" "$list -n 2" 'echo $RANK of $WORLD_SIZE at $MASTER_ADDR, $PADDLE_CURRENT_ENDPOINT'
expect "0 0" a "[rank 0] 0 of 3 at 10.77.0.1, 10.77.0.1:"
expect "0 0" b "[rank 2] 2 of 3 at 10.77.0.1, 10.77.0.2:"

meeting="--nnodes 2 --rdzv_endpoint 10.77.0.1:29400"
both "$meeting" "$meeting" '[ $RANK = 1 ] && kill -9 $$; sleep 1000'
expect "137 137" a "was killed by SIGKILL"
expect "137 137" b "[launch] rank 1 on "

both "$list" "--ips 10.77.0.2,10.77.0.1" true # each would be node 0
expect "1 1" a "was given --ips 10.77.0.2,10.77.0.1"
expect "1 1" b "the same list, in the same order"

both "$list --timeout 2" "--ips 10.77.0.1,10.77.0.3" true
expect "1 2" b "none of --ips 10.77.0.1,10.77.0.3 is an address of this node"
# A node that says it is where nobody finds it: said at both ends.
both "$list" "--ips 10.77.0.1,10.77.0.2 --host 10.99.0.2" true
expect "0 0" a "says that it is at 10.99.0.2, which cannot be reached from node 0: connect: Network is unreachable"
expect "0 0" b "--host 10.99.0.2 is no address of this node, which has 10.77.0.2"

# A cable that is cut ends no connection: each side has lost the other after three seconds.
( until grep -qF "] ready" "$scratch/a" && grep -qF "] ready" "$scratch/b"; do sleep 0.02; done 2>/dev/null
  ip -n "$a" link set "${devices[0]}" down && date +%s >"$scratch/cut" ) &
cutter=$!
rm -f "$scratch/a" "$scratch/b"
both "$list" "$list" 'echo ready; sleep 1000'
took=$(($(date +%s) - $(cat "$scratch/cut")))
wait "$cutter"
expect "1 1" a "[launch] node 1 ("
expect "1 1" b "[launch] node 0 ("
expect "1 1" a "its launcher was killed, or its machine or network does not answer"
if ((took > 9)); then
  echo "expected both launchers to end some 4 s after the cut, got $took s"
  failed=1
fi
exit "$failed"
