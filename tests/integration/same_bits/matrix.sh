#!/usr/bin/env bash
# A recipe has one hash, wherever it is computed, and another recipe has another.
#
#     matrix.sh cover ARGOSY PROGRAM [RESULTS]   a cover of the recipes on the processes of one host
#     matrix.sh hosts ARGOSY PROGRAM [RESULTS]   a cover of them on several hosts; 77 (skipped) without namespaces
#     matrix.sh full ARGOSY PROGRAM RESULTS [ONLY]
#                                                every recipe at every place, 300 updates each: hours. Started again, it
#                                                goes on after the runs that RESULTS has. ONLY, a regular expression,
#                                                chooses among "RECIPE PLACE", such as "^fit .* bf16 8 3 .*hosts".
#     matrix.sh judge RESULTS                    only compares the hashes that are there
#
# places.sh explains recipes and places. Processes beyond the virtual ranks are spares. A line of RESULTS is RECIPE
# UPDATES BUILD PLACE HASH and the digests of the parts. BUILD is a digest of the programs: the runs of another build
# are made anew, and not compared.
set -u
what=$1

# One hash for each recipe, and no two recipes with the same one.
judge() { # RESULTS BUILD
  awk -v build="$2" '
    build != "" && $9 != build { next }
    {
      recipe = $1 " " $2 " " $3 " " $4 " " $5 " " $6 " " $7 " " $8 " " $9
      if (!(recipe in runs)) order[++recipes] = recipe
      line[recipe, ++runs[recipe]] = $0
      hash[recipe, runs[recipe]] = $11
      if (++count[recipe, $11] > most[recipe]) { most[recipe] = count[recipe, $11]; usual[recipe] = $11 }
    }
    END {
      for (i = 1; i <= recipes; ++i) {
        recipe = order[i]
        printf "%3d of %3d runs have %s: %s\n", most[recipe], runs[recipe], usual[recipe], recipe
        all += runs[recipe]
        for (j = 1; j <= runs[recipe]; ++j)
          if (hash[recipe, j] == usual[recipe]) example = line[recipe, j]
        for (j = 1; j <= runs[recipe]; ++j)
          if (hash[recipe, j] != usual[recipe]) {
            print "DIFFERS: " line[recipe, j] "\n  expected: " example
            bad = 1
          }
        split(recipe, word)
        key = usual[recipe] " " word[9]
        if (key in owner) {
          print "THE SAME HASH: " owner[key] "\n          and: " recipe
          bad = 1
        }
        owner[key] = recipe
      }
      printf "%d runs of %d recipes\n", all, recipes
      exit bad || recipes == 0
    }' "$1"
}
if [[ $what == judge ]]; then
  judge "$2" ""
  exit
fi

argosy=$2 program=$3 only=${5:-}
. "$(dirname "$0")/places.sh"
results=${4:-$scratch/results}
touch "$results" || exit 1
build=$(cat "$program" "$argosy" "$argosy-torch" | sha256sum | head -c 8)

failed=0
# runs UPDATES RECIPE... -- PLACE...
runs() {
  local updates=$1 recipe=() place key result
  shift
  while [[ $1 != -- ]]; do
    recipe+=("$1")
    shift
  done
  shift
  for place in "$@"; do
    key="${recipe[*]} $updates $build $place"
    [[ "${recipe[*]} $place" =~ $only ]] || continue
    grep -qF "$key " "$results" && continue
    [[ $place == hosts:* && ${#hosts[@]} == 0 ]] && make_hosts 3
    if result=$(train_at "$place" "$scratch/run" "$updates" 0 "${recipe[@]}"); then
      echo "$key $result" >>"$results"
    else
      failed=1
    fi
    rm -rf "$scratch/run"
  done
}

# Each recipe at places that deal its virtual ranks differently.
cover() {
  runs 14 fit cnn adam f32 8 1 1 -- shm:1 shm:3 gloo:2
  runs 14 fit cnn lamb bf16 6 3 1 -- shm:2 gloo:8
  runs 14 fleet cnn momentum bf16 8 3 1 -- shm:1 shm:5 gloo:3
  runs 14 fleet cnn adam f32 6 1 1 -- shm:1 gloo:4 shm:8
  runs 14 wrapper cnn lamb f32 8 1 1 -- threads:1 threads:3 shm:8 gloo:2
  runs 14 wrapper cnn adam bf16 6 3 1 -- threads:5 shm:1 gloo:3 threads:8
  runs 14 wrapper cnn momentum f32 8 3 1 -- threads:8 shm:2
  runs 14 train cnn momentum f32 6 1 1 -- shm:1 gloo:4
  runs 14 train cnn adam bf16 8 3 1 -- shm:2 gloo:5
  runs 3 fleet resnet18 momentum f32 6 1 1 -- shm:1 shm:4 gloo:2
  # Not the same: another seed, another number of virtual ranks.
  runs 14 fleet cnn adam f32 6 1 2 -- shm:1
  runs 14 fleet cnn adam f32 7 1 1 -- shm:1
}
cover_of_hosts() {
  runs 14 fit cnn adam f32 8 1 1 -- shm:2 hosts:2+2 hosts:3+5
  runs 14 fleet cnn momentum bf16 6 3 1 -- shm:2 hosts:3+5
  runs 14 wrapper cnn lamb f32 8 1 1 -- threads:2 hosts:3+1 hosts:1+1+2
  runs 14 train cnn adam f32 8 1 1 -- shm:1 hosts:3+1
  runs 14 fleet cnn adam f32 2 1 1 -- shm:1 hosts:1+1+2
}
full() {
  local loop optimizer precision ranks micros processes places
  for ranks in 8 6; do
    for micros in 1 3; do
      for optimizer in adam lamb momentum; do
        for precision in f32 bf16; do
          for loop in fit fleet wrapper train; do
            places=(hosts:2+2 hosts:3+1 hosts:1+1+2 hosts:3+5)
            for processes in 1 2 3 4 5 8; do
              places+=("shm:$processes")
              ((processes > 1)) && places+=("gloo:$processes")
              [[ $loop == wrapper ]] && places+=("threads:$processes")
            done
            runs 300 $loop cnn $optimizer $precision $ranks $micros 1 -- "${places[@]}"
          done
        done
      done
    done
  done
  # Twelve of ResNet-18, whose gradients take several buckets and whose steps are divided in shared memory.
  runs 30 fit resnet18 momentum f32 8 1 1 -- shm:1 shm:3 gloo:5 hosts:1+1+2
  runs 30 fleet resnet18 adam bf16 6 3 1 -- shm:2 shm:5 gloo:4 hosts:3+1
  runs 30 wrapper resnet18 lamb f32 8 1 1 -- threads:3 shm:8 gloo:2 hosts:3+5
  # Not the same.
  runs 300 fleet cnn adam f32 8 1 2 -- shm:1
  runs 300 fleet cnn adam f32 7 1 1 -- shm:2
}
case $what in
  cover) cover ;;
  hosts)
    make_hosts 3
    cover_of_hosts
    ;;
  full) full ;;
  *) echo "cover, hosts, full or judge?"; exit 2 ;;
esac
judge "$results" "$build" || failed=1
exit $failed
