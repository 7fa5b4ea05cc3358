#!/usr/bin/env bash
# ssh.sh ARGOSY PROGRAM: --hostfile --ssh with a real sshd, two hosts that are addresses of the loopback.
# Exit code 77 (skipped) where there is no sshd.
set -uo pipefail
argosy=$1
sshd=$(PATH=$PATH:/usr/sbin command -v sshd) && command -v ssh ssh-keygen >/dev/null ||
  { echo "skipped: no sshd here: make test-clusters installs it"; exit 77; }
. "$(dirname "$0")/checks.sh"
scratch=$(mktemp -d)
port=$((20000 + $$ % 10000))
server=0
clean_up() {
  kill "$server" 2>/dev/null
  rm -rf "$scratch"
}
trap clean_up EXIT
cd "$scratch" || exit 1
own_copy "$2" "$scratch"
for key in host user; do ssh-keygen -q -t ed25519 -N '' -f "$key"; done
cp user.pub authorized
cat >sshd.conf <<EOF
ListenAddress 127.0.0.1:$port
ListenAddress 127.0.0.2:$port
HostKey $scratch/host
AuthorizedKeysFile $scratch/authorized
PidFile $scratch/sshd.pid
StrictModes no
UsePAM no
PermitRootLogin yes
EOF
cat >ssh.conf <<EOF
Host *
  Port $port
  IdentityFile $scratch/user
  UserKnownHostsFile $scratch/known
  StrictHostKeyChecking accept-new
  LogLevel ERROR
  ConnectTimeout 5
EOF
mkdir -p /run/sshd 2>/dev/null
"$sshd" -D -e -f sshd.conf 2>sshd.log &
server=$!
for ((i = 0; i < 100; ++i)); do (: >"/dev/tcp/127.0.0.2/$port") 2>/dev/null && break || sleep 0.1; done
export ARGOSY_SSH_COMMAND="ssh -F $scratch/ssh.conf"
ssh -F ssh.conf -o BatchMode=yes 127.0.0.1 true || { echo "skipped: sshd does not let this user in"; cat sshd.log; exit 77; }
printf '127.0.0.1 slots=1\n127.0.0.2 slots=2\n' >hosts

# over OPTIONS... PROGRAM...: output in $output, exit code in $code
over() {
  output=$(timeout 100 "$argosy" launch --hostfile hosts --ssh --log_dir '' "$@" 2>&1 </dev/null)
  code=$?
}

over --env 'SAID=it'\''s here' sh -c 'echo rank $RANK of $WORLD_SIZE, node $GROUP_RANK, $SAID in $PWD'
expect 0 "[rank 0] rank 0 of 3, node 0, it's here in $scratch" "[rank 2] rank 2 of 3, node 1, it's here in $scratch"

# The secret is on no command line, here or there.
export ARGOSY_TOKEN=secret-$$-of-this-test
over sh -c 'cat /proc/[0-9]*/cmdline | tr "\0" " "; echo; echo env $ARGOSY_TOKEN'
expect 0 "[rank 0] env secret-$$-of-this-test" # it does arrive
[[ $(grep -c "secret-$$-of-this-test" <<<"$output") == 3 ]] || fail "the secret stands on a command line"
unset ARGOSY_TOKEN

over --tls --json report.json --env API_KEY=not-to-be-seen sh -c 'echo $ARGOSY_TLS has $API_KEY'
expect 0 "[rank 2] 1 has not-to-be-seen"
[[ $(grep -o '"exit_code": *0' report.json) && $(grep -o '"ranks": *3' report.json) ]] || fail "expected a report of 3 ranks that ended well: $(cat report.json)"
over --dry_run --env API_KEY=not-to-be-seen ./train --auth-token=not-to-be-seen
expect 0 "[launch] would run: ssh"
[[ $output != *not-to-be-seen* ]] || fail "the dry run shows a secret: $output"

over sh -c 'exit 255'
expect 255 "[launch] exit code 255"

over sh -c '[ $RANK = 2 ] && exit 9; sleep 1000'
expect 9 "rank 2 on "

over ./no-such-program
expect 127 "cannot start"

printf '127.0.0.1\n127.0.0.9\n' >gone # nobody listens at that address
output=$(timeout 100 "$argosy" launch --hostfile gone --ssh --timeout 60 --log_dir '' true 2>&1 </dev/null)
code=$?
expect 1 "ssh to 127.0.0.9 failed with exit code 255"

# stopped SIGNAL: the launcher here gets it once the ranks run
nap="sleep 1001.$$" # what no other test runs
stopped() {
  : >out
  "$argosy" launch --hostfile hosts --ssh --log_dir '' sh -c "trap 'echo asked; exit 0' TERM; echo ready; $nap & wait" >out 2>&1 </dev/null &
  local launcher=$!
  for ((i = 0; i < 200; ++i)); do [[ $(grep -c ready out) == 3 ]] && break || sleep 0.05; done
  kill "-$1" "$launcher"
  wait "$launcher" 2>/dev/null
  code=$?
  for ((i = 0; i < 100; ++i)); do pgrep -fx "$nap" >/dev/null || break; sleep 0.1; done
  output=$(cat out)
  ! pgrep -fx "$nap" >/dev/null || fail "a rank's process is left after SIG$1"
}
stopped TERM
expect 143 "asked"
stopped QUIT
expect 131 "asked"
stopped KILL
[[ $code == 137 ]] || fail "the launcher was not killed"

export OMP_NUM_THREADS=1
printf '127.0.0.1:1\n127.0.0.2:1\n' >hosts
over --tls --env OMP_NUM_THREADS=1 "$program"
expect_accuracy 85
nothing_left "$program"
exit "$failed"
