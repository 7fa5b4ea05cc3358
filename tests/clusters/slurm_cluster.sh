# Sourced: a real Slurm of two nodes on this machine, each a network namespace with a host name of its
# own, behind a bridge. Needs root. No systemd, no cgroups, nothing outside $cluster (a scratch folder)
# and three namespaces, all of which cluster_down removes.
#
#   cluster_up || exit 77     # says why not
#   on_head COMMAND...        # as on the login node
#
# Files named passwd and group in $cluster are those of all hosts: users that this machine does not have.

cluster=$(mktemp -d /tmp/argosy-slurm-XXXXXX) # a short path: sockets lie below it, 108 bytes at most
tag=argosy-$$
daemons=()

# as HOST COMMAND...: on that host; HOST is ctl, node1 or node2. Replaces the shell.
as() {
  local host=$1
  shift
  exec nsenter --net="/run/netns/$tag-$host" unshare --uts --mount sh -ec '
    hostname "$1"; mount --bind "$2/hosts" /etc/hosts; mount --bind "$2/tmp-$1" "$2/tmp"
    for file in passwd group; do [ ! -e "$2/$file" ] || mount --bind "$2/$file" "/etc/$file"; done
    shift 2; exec "$@"' \
    sh "$host" "$cluster" "$@"
}
on_head() { (SLURM_CONF=$cluster/slurm.conf as ctl "$@"); }

network_up() {
  local i
  for host in ctl node1 node2; do
    ip netns add "$tag-$host" && ip -n "$tag-$host" link set lo up || return 1
  done
  ip -n "$tag-ctl" link add br0 type bridge && ip -n "$tag-ctl" addr add 10.78.0.1/24 dev br0 &&
    ip -n "$tag-ctl" link set br0 up || return 1
  for i in 1 2; do
    ip -n "$tag-ctl" link add "v$i" type veth peer name eth0 netns "$tag-node$i" &&
      ip -n "$tag-ctl" link set "v$i" master br0 up &&
      ip -n "$tag-node$i" addr add "10.78.0.1$i/24" dev eth0 && ip -n "$tag-node$i" link set eth0 up || return 1
  done
}

configure() {
  mkdir -m 755 "$cluster"/{state,spool-node1,spool-node2,tmp,tmp-ctl,tmp-node1,tmp-node2}
  printf '127.0.0.1 localhost\n10.78.0.1 ctl\n10.78.0.11 node1\n10.78.0.12 node2\n' >"$cluster/hosts"
  (umask 077 && head -c 128 /dev/urandom >"$cluster/munge.key")
  cat >"$cluster/slurm.conf" <<EOF
ClusterName=argosy
SlurmctldHost=ctl(10.78.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$cluster/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MailProg=/bin/true
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool-%n
SlurmctldPidFile=$cluster/ctld.pid
SlurmdPidFile=$cluster/slurmd-%n.pid
SlurmctldLogFile=$cluster/ctld.log
SlurmdLogFile=$cluster/slurmd-%n.log
NodeName=node1 NodeHostname=node1 NodeAddr=10.78.0.11 CPUs=4
NodeName=node2 NodeHostname=node2 NodeAddr=10.78.0.12 CPUs=4
PartitionName=all Nodes=node[1-2] Default=YES State=UP
EOF
}

# daemon COMMAND...: in the background, remembered
daemon() { ("$@") >>"$cluster/daemons.log" 2>&1 </dev/null & daemons+=("$!"); }

cluster_up() {
  local missing=() command
  for command in slurmctld slurmd srun munged; do command -v "$command" >/dev/null || missing+=("$command"); done
  [[ ${#missing[@]} -eq 0 ]] || { echo "skipped: no ${missing[*]} here: make test-clusters installs them"; return 1; }
  [[ $EUID -eq 0 ]] || { echo "skipped: Slurm's daemons need root"; return 1; }
  network_up 2>"$cluster/why" || { echo "skipped: no network namespaces here: $(head -n 1 "$cluster/why")"; return 1; }
  configure
  chmod 755 "$cluster"
  daemon munged --foreground --force --key-file="$cluster/munge.key" --socket="$cluster/munge.socket" \
    --pid-file="$cluster/munge.pid" --log-file="$cluster/munge.log" --seed-file="$cluster/munge.seed"
  export SLURM_CONF=$cluster/slurm.conf
  for ((i = 0; i < 100; ++i)); do [[ -S $cluster/munge.socket ]] && break || sleep 0.1; done
  daemon as ctl slurmctld -D -c
  daemon as node1 slurmd -D -N node1
  daemon as node2 slurmd -D -N node2
  for ((i = 0; i < 150; ++i)); do
    [[ $(on_head sinfo -h -t idle -o %D 2>/dev/null) == 2 ]] && return 0
    grep -q "slurmd initialization failed" "$cluster"/slurmd-*.log 2>/dev/null && break
    sleep 0.2
  done
  if grep -q "Unable to initialize cgroup plugin" "$cluster"/slurmd-*.log; then
    echo "skipped: slurmd cannot use cgroups here: $(grep -h "cgroup" "$cluster"/slurmd-node1.log | head -n 1)"
    return 1
  fi
  echo "Slurm did not come up:"
  tail -n 20 "$cluster"/*.log
  exit 1
}

cluster_down() {
  local pid
  for pid in "${daemons[@]}"; do kill "$pid" 2>/dev/null; done
  for pid in "${daemons[@]}"; do
    for ((i = 0; i < 50; ++i)); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -KILL "$pid" 2>/dev/null
  done
  for host in ctl node1 node2; do ip netns del "$tag-$host" 2>/dev/null; done
  rm -rf "$cluster"
}
