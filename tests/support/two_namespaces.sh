# Sourced: makes two hosts, which are network namespaces joined by a veth pair: $a at 10.77.0.1 (device va$$), $b at
# 10.77.0.2 (vb$$), and a folder $scratch; they go with the script. Exit code 77 (skipped) where none may be made.
a=argosy-a-$$ b=argosy-b-$$
scratch=$(mktemp -d)
clean_up() {
  ip netns del "$a" 2>/dev/null
  ip netns del "$b" 2>/dev/null
  rm -rf "$scratch"
}
trap clean_up EXIT
{ ip netns add "$a" && ip netns add "$b" && ip -n "$a" link set lo up && ip -n "$b" link set lo up &&
  ip link add "va$$" netns "$a" type veth peer name "vb$$" netns "$b" &&
  ip -n "$a" addr add 10.77.0.1/24 dev "va$$" && ip -n "$b" addr add 10.77.0.2/24 dev "vb$$" &&
  ip -n "$a" link set "va$$" up && ip -n "$b" link set "vb$$" up; } 2>"$scratch/why" ||
  { echo "skipped: no network namespaces here: $(head -n 1 "$scratch/why")"; exit 77; }
