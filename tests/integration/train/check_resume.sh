#!/usr/bin/env bash
# A training that is killed comes to the same end as one that is not: the same weights, averages and
# optimizer's state, to the bit, and in each epoch the same figures.
#
#     check_resume.sh kill ARGOSY PROGRAM [KILLS] [SEED]   SIGKILL at random moments: ranks, launcher, all of it
#                                                          (ARGOSY_TEST_KILLS, 12); one or two processes go on
#     check_resume.sh forget ARGOSY PROGRAM                without any one component of the state it does not
#     check_resume.sh signal ARGOSY PROGRAM                SIGTERM and SIGUSR1 save and leave with 75, SIGINT with 130
set -u
what=$1 argosy=$2 program=$3 kills=${4:-${ARGOSY_TEST_KILLS:-12}}
RANDOM=${5:-$$}
[[ $what == kill ]] && echo "seed $RANDOM"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1
# The program starts so often that reading 60,000 pictures would take most of the time.
export PICTURES=$work/pictures
"$(dirname "$0")/../../data/fewer_pictures.sh" /usr/share/datasets/fashion-mnist "$PICTURES" 1000 100 || exit 1

fail() {
  echo "check_resume: $*" >&2
  exit 1
}
train() { # FOLDER [ARGUMENTS]: in the foreground
  mkdir -p "$1"
  "$argosy" launch --nproc_per_node 2 --log_dir "$1/log" "$program" "$@" > "$1/out" 2>&1
}
result() { grep -ho 'result: .*' "$1/out" | tail -n 1; }
# The last line of each epoch.
figures() { awk '{ last[$2] = $0 } END { for (epoch in last) print last[epoch] }' "$1/epochs" | sort; }

train "$work/whole" || fail "the whole training failed: $(tail -n 5 "$work/whole/out")"
expected=$(result "$work/whole")
[[ -n $expected ]] || fail "no result"
echo "uninterrupted: $expected"
same() { # FOLDER
  [[ $(result "$1") == "$expected" ]] || return 1
  cmp -s <(figures "$1") <(figures "$work/whole")
}

case $what in
  kill)
    done_kills=0 while_saving=0 trainings=0 starts=0 of_each=(0 0 0)
    while ((done_kills < kills)); do
      folder=$work/killed$trainings
      mkdir -p "$folder"
      while true; do
        starts=$((starts + 1))
        rm -f "$folder"/pid?
        processes=$((1 + RANDOM % 2))
        of_each[processes]=$((of_each[processes] + 1))
        "$argosy" launch --nproc_per_node $processes --log_dir "$folder/log" "$program" "$folder" > "$folder/out" 2>&1 &
        launcher=$!
        for ((i = 0; i < 1000; ++i)); do # until both ranks have begun
          [[ -s $folder/pid0 && -s $folder/pid$((processes - 1)) ]] && break
          kill -0 $launcher 2> /dev/null || break
          sleep 0.01
        done
        sleep "0.$(printf '%03d' $((RANDOM % 900)))"
        case $((RANDOM % 4)) in
          0) victims=$launcher ;;
          1) victims=$(cat "$folder/pid0") ;;
          2) victims=$(cat "$folder/pid$((processes - 1))") ;;
          3) victims="$launcher $(cat "$folder"/pid? | tr '\n' ' ')" ;;
        esac
        # shellcheck disable=SC2086  # several
        kill -KILL $victims 2> /dev/null && killed=1 || killed=0
        { wait $launcher; } 2> /dev/null
        code=$?
        for ((rank = 0; rank < processes; ++rank)); do # the guard ends them when their launcher is gone
          for ((i = 0; i < 500; ++i)); do
            kill -0 "$(cat "$folder/pid$rank")" 2> /dev/null || break
            sleep 0.01
          done
        done
        ((code == 0)) && break
        ((killed)) || fail "exit code $code without a kill: $(tail -n 5 "$folder/out")"
        done_kills=$((done_kills + 1))
        compgen -G "$folder/checkpoints/.step-*" > /dev/null && while_saving=$((while_saving + 1))
        ((starts < 40 * kills)) || fail "no training ends"
      done
      trainings=$((trainings + 1))
      # An epoch whose end came twice has to be the same twice.
      [[ $(sort -u "$folder/epochs" | wc -l) == $(figures "$folder" | wc -l) ]] || fail "an epoch came to two ends"
      same "$folder" || fail "killed and resumed, another end: $(result "$folder")"
    done
    echo "the same to the bit: $trainings trainings, $starts starts (${of_each[1]} of one process)," \
      "$done_kills kills, $while_saving of them while saving"
    ;;
  forget)
    train "$work/base" --num_iters 130 || fail "the first part failed"
    [[ $(result "$work/base") != "$expected" ]] || fail "it was not cut"
    components=$("$program" --list)
    [[ $components == *nothing* ]] || fail "no components"
    for component in $components; do
      folder=$work/$component
      cp -r "$work/base" "$folder"
      rm -f "$folder/out"
      if train "$folder" --forget "$component" && same "$folder"; then
        found=same
      else
        found=differs
      fi
      echo "without $component: $found"
      wanted=differs
      [[ $component == nothing ]] && wanted=same
      [[ $found == "$wanted" ]] || fail "expected: $wanted. $(tail -n 3 "$folder/out")"
      rm -rf "$folder"
    done
    ;;
  signal)
    for signal in TERM USR1 INT; do
      folder=$work/$signal
      mkdir -p "$folder"
      wanted=75
      [[ $signal == INT ]] && wanted=130
      # Shells start what is in the background with SIGINT ignored.
      env --default-signal=INT "$argosy" launch --nproc_per_node 2 --log_dir "$folder/log" "$program" "$folder" \
        > "$folder/out" 2>&1 &
      launcher=$!
      for ((i = 0; i < 1000; ++i)); do
        [[ -d $folder/checkpoints/step-000000008 ]] && break
        sleep 0.01
      done
      kill -$signal $launcher
      wait $launcher
      code=$?
      ((code == wanted)) || fail "SIG$signal: expected exit code $wanted, got $code: $(tail -n 5 "$folder/out")"
      grep -q "saved a checkpoint at step" "$folder/out" || fail "SIG$signal: nothing was said"
      train "$folder" || fail "after SIG$signal it does not go on: $(tail -n 5 "$folder/out")"
      same "$folder" || fail "after SIG$signal another end: $(result "$folder")"
      echo "SIG$signal: exit code $wanted, and the same end"
    done
    ;;
  *) fail "kill, forget or signal?" ;;
esac
