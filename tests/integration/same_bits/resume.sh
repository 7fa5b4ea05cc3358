#!/usr/bin/env bash
# resume.sh ARGOSY PROGRAM: trainings that are stopped in the middle of epochs and go on with other processes, on other
# hosts, come to the hash of those that nobody stopped.
set -u
argosy=$1 program=$2
. "$(dirname "$0")/places.sh"
two_hosts=hosts:2+1
if ! try_to_make_hosts 3 2>/dev/null; then
  two_hosts=gloo:4
  echo "no network namespaces here: four processes in the place of two hosts"
fi

failed=0
# stopped RECIPE...: an epoch has 5 to 13 updates. The stops lie in the middle of one, fleet's last stop at its end.
stopped() {
  local whole="$scratch/whole" parts="$scratch/parts" expected result step=0
  expected=$(train_at shm:2 "$whole" 17 0 "$@") || { failed=1; return; }
  echo "$*: never stopped: $expected"
  for leg in "shm:3 7" "gloo:$more 9" "$two_hosts 12" "shm:1 0"; do
    result=$(train_at "${leg% *}" "$parts" 17 "${leg#* }" "$@") || { failed=1; break; }
    if ((step > 0)) && ! grep -q "Resuming from .*, step $step\$" "$parts/out"; then
      echo "expected it to resume at ${leg% *} from step $step, but:"
      cat "$parts/out"
      failed=1
    fi
    step=${leg#* }
    if [[ $step != 0 && ${result%% *} == "${expected%% *}" ]]; then
      echo "stopped at step $step it has the hash of the end already"
      failed=1
    fi
  done
  if [[ $result == "$expected" ]]; then
    echo "$*: stopped on 3, on $more and at $two_hosts, ended on 1: the same"
  else
    echo "$*: DIFFERS: $result"
    failed=1
  fi
  rm -rf "$whole" "$parts"
}
more=5
stopped fit cnn adam bf16 8 3 1
stopped train cnn momentum f32 8 1 1
more=8 # two spares
stopped fleet cnn lamb bf16 6 3 1
exit $failed
