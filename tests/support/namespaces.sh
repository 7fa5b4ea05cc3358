# Sourced: `make_hosts N` makes N hosts, which are network namespaces on one bridge. ${hosts[0]} is at 10.77.0.1 by its
# device ${devices[0]}, ${hosts[1]} at 10.77.0.2 by ${devices[1]}, and so on. There is a folder $scratch. All of it goes
# with the script. Exit code 77 (skipped) where no namespace may be made.
hosts=() devices=()
bridge=argosy-bridge-$$
scratch=$(mktemp -d)
clean_up() {
  local host
  for host in "${hosts[@]}" "$bridge"; do
    ip netns del "$host" 2>/dev/null
  done
  rm -rf "$scratch"
}
trap clean_up EXIT
try_to_make_hosts() { # N
  local i host device
  ip netns add "$bridge" && ip -n "$bridge" link add bridge type bridge && ip -n "$bridge" link set bridge up || return
  for ((i = 1; i <= $1; ++i)); do
    host=argosy-$i-$$ device=v$i-$$
    hosts+=("$host") devices+=("$device")
    ip netns add "$host" && ip -n "$host" link set lo up &&
      ip link add "$device" netns "$host" type veth peer name "port$i" netns "$bridge" &&
      ip -n "$bridge" link set "port$i" master bridge up &&
      ip -n "$host" addr add "10.77.0.$i/24" dev "$device" && ip -n "$host" link set "$device" up || return
  done
}
make_hosts() { # N
  try_to_make_hosts "$1" 2>"$scratch/why" ||
    { echo "skipped: no network namespaces here: $(head -n 1 "$scratch/why")"; exit 77; }
}
