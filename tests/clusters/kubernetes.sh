#!/usr/bin/env bash
# kubernetes.sh ARGOSY ARGOSY_TORCH MANIFESTS: checks the manifests of packaging/kubernetes and runs their pods as the
# cluster and the operators would start them, each as a user in namespaces of its own with a name and an address. They
# meet and train. There is no Kubernetes. Exit code 77 (skipped) where something is missing.
set -uo pipefail
tests=$(cd "$(dirname "$0")" && pwd)
argosy=$1 argosy_torch=$2 manifests=$3
for command in yamllint ip ssh-keygen /usr/sbin/sshd; do
  command -v "$command" >/dev/null || { echo "skipped: no $command here: make test-clusters installs it"; exit 77; }
done
/usr/bin/python3 -c 'import kubernetes, yaml' 2>/dev/null ||
  { echo "skipped: no python3-kubernetes here: make test-clusters installs it"; exit 77; }
[[ $EUID -eq 0 ]] || { echo "skipped: network namespaces need root"; exit 77; }
# shellcheck source=tests/clusters/checks.sh
. "$tests/checks.sh"
cluster=$(mktemp -d /var/tmp/argosy-pods-XXXXXX)
chmod 755 "$cluster"
tag=argosy-pods-$$
pods=()
pod_processes=()
# shellcheck disable=SC2317 # by the trap too
pods_down() {
  local pid pod
  for pid in "${pod_processes[@]}"; do kill -KILL "$pid" 2>/dev/null; done
  for pid in "${pod_processes[@]}"; do wait "$pid" 2>/dev/null; done
  for pod in "${pods[@]}"; do ip netns del "$tag-$pod" 2>/dev/null; done
  pods=() pod_processes=()
}
# shellcheck disable=SC2317
clean_up() {
  pods_down
  ip netns del "$tag-switch" 2>/dev/null
  rm -rf "$cluster"
}
trap clean_up EXIT
{
  ip netns add "$tag-switch" && ip -n "$tag-switch" link add br0 type bridge && ip -n "$tag-switch" link set br0 up
} 2>"$cluster/why" ||
  { echo "skipped: no network namespaces here: $(head -n 1 "$cluster/why")"; exit 77; }

# What the manifests say, and that the checks see what is wrong.
output=$(yamllint -s -d '{extends: default, rules: {line-length: {max: 120}, document-start: disable,
  comments: {min-spaces-from-content: 1}}}' "$manifests" 2>&1 && "$tests/manifests.py" lint "$manifests"/*.yaml 2>&1)
code=$?
[[ $code -eq 0 ]] || fail "the manifests are not as they should be"
# refused FILE EDIT WORDS: with that edit by sed the check names what is wrong
refused() {
  sed -E "$2" "$manifests/$1" >"$cluster/broken.yaml"
  output=$("$tests/manifests.py" lint "$cluster/broken.yaml" 2>&1)
  code=$?
  expect 1 "$3"
}
refused indexed_job.yaml 's/subdomain:/subdomian:/' "there is no field subdomian"
refused indexed_job.yaml 's/completions: 2/completions: 3/' "numbers of pods differ"
refused indexed_job.yaml 's/completions: 2/completions: "2"/' "expected int, got '2'"
refused indexed_job.yaml 's/master=train-0/master=train/' "--master is not pod 0"
refused indexed_job.yaml 's/- name: argosy$/- workingDir: \//' "containers[0]: Invalid value for \`name\`, must not be \`None\`"
refused pytorchjob.yaml 's/nprocPerNode: "1"/nprocPerNode: 1/' "expected str, got 1"
refused mpijob.yaml 's/tcpSocket:/tcpSockets:/' "there is no field tcpSockets"
refused mpijob.yaml 's/slotsPerWorker/slotsPerWorkers/' "there is no field slotsPerWorkers"

mkdir -m 777 "$cluster/ssh"
ssh-keygen -q -t ecdsa -b 521 -N '' -f "$cluster/ssh/id_rsa" # the name that the operator gives it
cp "$cluster/ssh/id_rsa.pub" "$cluster/ssh/authorized_keys"
chmod 644 "$cluster/ssh"/* # as the operator mounts them; they belong to root
{ awk -F : '$3 != 1000' /etc/passwd && echo 'argosy:x:1000:1000::/srv/argosy:/bin/bash'; } >"$cluster/passwd"
mkdir "$cluster/bin"
cp "$argosy" "$cluster/bin/argosy"
cp "$argosy_torch" "$cluster/bin/argosy-torch"

# job MANIFEST [--old]: namespaces and scripts for its pods
job() {
  local pod address=10
  rm -rf "$cluster"/{scripts,shared,out,hosts,hostfile}
  touch "$cluster/hostfile"
  mkdir -m 755 "$cluster"/{scripts,out}
  mkdir -m 777 "$cluster/shared"
  mapfile -t pods < <("$tests/manifests.py" pods "$manifests/$1" "$cluster/scripts" "${@:2}")
  echo '127.0.0.1 localhost' >"$cluster/hosts"
  for pod in "${pods[@]}"; do
    address=$((address + 1))
    ip netns add "$tag-$pod" && ip -n "$tag-$pod" link set lo up
    ip -n "$tag-switch" link add "v$address" type veth peer name eth0 netns "$tag-$pod"
    ip -n "$tag-switch" link set "v$address" master br0 up
    ip -n "$tag-$pod" addr add "10.79.0.$address/24" dev eth0 && ip -n "$tag-$pod" link set eth0 up
    echo "10.79.0.$address $pod $pod.train $pod.train.default.svc" >>"$cluster/hosts"
    [[ $pod != train-worker-* ]] || echo "$pod.train.default.svc slots=1" >>"$cluster/hostfile"
  done
  # A test need not see all pictures.
  sed -i -E 's#(--data=fashion_mnist:\S*)#\1,limit=4000#' "$cluster/scripts"/*
}
# start POD: as its own process 1; its output in $cluster/out/POD
start() {
  # shellcheck disable=SC2016 # the other shell's
  SHARED=$cluster/shared nsenter --net="/run/netns/$tag-$1" unshare --uts --ipc --mount --pid --fork \
    --kill-child sh -ec '
    hostname "$1"
    mount --make-rprivate /
    mount -t proc proc /proc
    mount -t tmpfs tmpfs /mnt && mkdir /mnt/changed /mnt/work
    mount -t overlay -o lowerdir=/etc,upperdir=/mnt/changed,workdir=/mnt/work overlay /etc
    mkdir -p /etc/mpi && cp "$2/hostfile" /etc/mpi
    for file in hosts passwd; do mount --bind "$2/$file" "/etc/$file"; done
    mount -t tmpfs -o mode=755 tmpfs /srv && mkdir -p /srv/argosy/.ssh && chown -R 1000:1000 /srv/argosy
    for folder in /tmp /dev/shm; do mount -t tmpfs -o mode=1777 tmpfs "$folder"; done
    mount --bind "$2/bin" /usr/local/bin
    mount --bind "$2/ssh" /srv/argosy/.ssh
    exec "$2/scripts/$1"' sh "$1" "$cluster" >"$cluster/out/$1" 2>&1 </dev/null &
  pod_processes+=("$!")
  process_of[$1]=$!
}
declare -A process_of
# ended POD: its exit code in $code, its output in $output
ended() {
  timeout 100 tail --pid="${process_of[$1]}" -f /dev/null || kill -KILL "${process_of[$1]}"
  wait "${process_of[$1]}"
  code=$?
  output=$(cat "$cluster/out/$1")
}
# trained POD...: each has ended well, and the first one's output says how well
trained() {
  local pod accuracy
  for pod; do
    ended "$pod"
    expect 0
  done
  ended "$1"
  accuracy=$(sed -n 's/.*eval_acc: \([0-9.]*\).*/\1/p' <<<"$output" | tail -n 1)
  awk -v got="${accuracy:-0}" 'BEGIN { exit !(got >= 0.6) }' || fail "$1 ends with accuracy \"$accuracy\""
  [[ -e $cluster/shared/demo/index.html ]] || fail "no run in the shared folder: $(ls "$cluster/shared")"
  echo "trained: $* ($accuracy)"
}

job indexed_job.yaml
names=$(cat "$cluster/hosts")
sed '/train-0/d' <<<"$names" >"$cluster/hosts" # the cluster has not placed pod 0 yet
start train-1
sleep 2
echo "$names" >"$cluster/hosts"
start train-0
trained train-0 train-1
pods_down

for old in "" --old; do
  # shellcheck disable=SC2086 # none or one word
  job pytorchjob.yaml $old
  start train-worker-0
  start train-master-0
  trained train-master-0 train-worker-0
  pods_down
done

job mpijob.yaml
start train-worker-0
start train-worker-1
start train-launcher
trained train-launcher
pods_down
exit "$failed"
