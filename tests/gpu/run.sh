#!/usr/bin/env bash
# What only a GPU shows, in one call of ten minutes at most.
#
#     tests/gpu/run.sh PROGRAMS OUT [PART...]
#
# PROGRAMS is pack.sh's archive, or a build folder. OUT gets figures.jsonl and logs.tar.gz. Parts, all without any:
#     tests    the device tests on CUDA: collectives, training, input, argosy doctor's measuring
#     doctor   argosy doctor: what the driver's tools and libtorch say about the card
#     nccl     the libnccl.so.2 that PyTorch brings: every call in a communicator of one rank, our transport in a
#              group of one
#     ranks    several ranks over it on one card, which it takes for hosts: the conformance suite in the exact mode,
#              with ranks that fail and die, trainings in both modes, and argosy train; 150 s at most. Between the ranks
#              it goes by TCP, so no time means anything
#     exact    sums of NCCL's exact mode against the CPU's bits: all types, reductions and trees
#     copies   rates of copies, and of the exact mode's sums beside them
#     input    JPEGs to batches on all cores, alone and beside ResNet-50's steps; the same in PyTorch
#     gpt      steps of a GPT-2 of 124 M parameters beside PyTorch's, eager and compiled, interleaved: 180 s
#     steps    the same of ResNet-50's; takes the time that is left
# Each part ends with a line of its own, and one that fails does not stop the others. table.py then prints all figures
# and the goals beside them. Exit code: 0, or 1 where a part failed or none ran.
#
# The machine: one GPU, Python with PyTorch and torchvision, no network. On one that is lent for minutes the first call
# is best "tests doctor nccl ranks exact copies", the second "input gpt steps". GPU_SECONDS (540): when the last rounds
# end; what still runs 40 s later is stopped. --dry in front of PROGRAMS runs the same at tiny sizes on stand-ins for a
# GPU, whose figures mean nothing.
set -uo pipefail
dry=0
[ "${1-}" != --dry ] || { dry=1; shift; }
[ $# -ge 2 ] || { sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2; }
programs=$(realpath "$1") out=$(realpath -m "$2")
shift 2
parts=("$@")
[ $# -gt 0 ] || parts=(tests doctor nccl ranks exact copies input gpt steps)
cd "$(dirname "$0")/../.." || exit 1
folder=$(mktemp -d) ran=0 failed=0
trap 'rm -rf "$folder"' EXIT
logs=$out/logs figures=$out/figures.jsonl
mkdir -p "$logs"
: > "$figures"

# --- where things are, and how large they may be

python=${PEERS:-python3}
torch=$("$python" -c 'import os, torch, torchvision; print(os.path.dirname(torch.__file__))' 2>/dev/null) || torch=""
libraries=""
if [ -f "$programs" ]; then
  tar -C "$folder" -xJf "$programs" || exit 1
  libraries=$torch/lib:$folder/lib
  programs=$folder/bin
fi
find_program() { find "$programs" -type f -executable -name "$1" -print -quit; }
if [ $dry = 0 ]; then
  seconds=${GPU_SECONDS:-540} device=cuda:0 copies_on=cuda:0 kind=Cuda
  cores=$(nproc) model=resnet50
  conformance='NcclOnCuda/*' shards=4 train_on=cuda over_nccl='Cuda/NcclInProcesses.*:Cuda/*OverNccl*'
  tests="Cuda/*-$over_nccl" test_programs=(devices_test devices_processes_test devices_input_test app_doctor_torch_test)
  copies=(--elements 67108864 --rounds 5 --least_ms 50)
  pictures=(--files 256 --links 48)
  batch=256 epochs=4 fed=(--rounds 3 --batch 256 --steps 15 --warmup 10)
  steps=(--rounds 7 --batch 256 --side 224 --steps 20 --warmup 10)
  gpt=gpt2:vocab_size=50304 gpt_steps=(--rounds 5 --batch 16 --steps 20 --warmup 5)
  precisions=(bf16 f32)
  [ -n "$torch" ] || { echo "run.sh: $python has no torch with torchvision (PEERS names another)" >&2; exit 1; }
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || exit 1
else
  seconds=200 device=cpu copies_on=second kind=Second
  cores=2 model=resnet18
  conformance='Nccl/TransportConformance.*Reduc*/Processes2' shards=2 train_on=cpu
  over_nccl='Second/NcclInProcesses.ShareADevice*'
  tests='Second/CommOnDevices.InPlace/*:Second/DeviceInput.*:Second/DoctorOfDevices.*'
  test_programs=(devices_test devices_input_test app_doctor_torch_test)
  copies=(--elements 1000 --rounds 1 --least_ms 1)
  pictures=(--files 16 --links 1)
  batch=4 epochs=2 fed=(--rounds 1 --batch 4 --steps 1 --warmup 1)
  steps=(--rounds 1 --batch 2 --side 32 --steps 2 --warmup 1)
  gpt=gpt:layers=2,width=64,vocab_size=100,context=32 gpt_steps=(--rounds 1 --batch 2 --steps 12 --warmup 1)
  precisions=(f32)  # as fast on every processor
fi
export OMP_NUM_THREADS=1
ours() { # program and its arguments
  local found
  found=$(find_program "$1")
  [ -n "$found" ] || { echo "run.sh: $programs holds no $1" >&2; return 127; }
  LD_LIBRARY_PATH=${libraries:-${LD_LIBRARY_PATH-}} "$found" "${@:2}"
}
export -f ours find_program
export programs libraries

# --- the parts: 0 passed, 77 not run, else failed; the last line of the log says why

# A limit in seconds, or what is left if that is less. Never 0, which means no limit to timeout.
latest=$((seconds + 40))
at_most() {
  local left=$((latest - SECONDS))
  [ $left -ge 1 ] || left=1
  echo $(($1 < left ? $1 : left))
}
# A program of tests. Where there is no device all its cases skip themselves, and it ends well.
cases() { # seconds, filter, program, and the log's name if it is not the program's
  local log=$logs/${4:-$3}.log
  timeout "$(at_most "$1")" bash -c 'ours "$@"' run "$3" --gtest_filter="$2" > "$log" 2>&1
  local status=$?
  grep -E '^\[  (FAILED|PASSED)' "$log" | sort -u | sed "s/^/$3: /"
  echo "$3: $(grep -cE '^\[  SKIPPED \].*ms\)' "$log") skipped"
  [ $status = 0 ] || { tail -n 20 "$log"; echo "$3: exit code $status"; return 1; }
  grep -q '^\[  PASSED  \] [1-9]' "$log" || { echo "$3: no device"; return 77; }
}
# One that skips all its cases does not undo what others have passed.
part_tests() {
  local passed=0 broken=0 program
  for program in "${test_programs[@]}"; do
    cases 100 "$tests" "$program"
    case $? in 0) passed=1 ;; 77) ;; *) broken=1 ;; esac
  done
  [ $broken = 0 ] || return 1
  [ $passed = 1 ] || return 77
}
# Only what it says of GPUs is judged: the rest is the machine's.
part_doctor() {
  local log=$logs/doctor.log
  timeout "$(at_most 120)" bash -c 'ours "$@"' run argosy doctor --no_training > "$log" 2>&1
  [ $dry = 0 ] || ours argosy-torch doctor-devices >> "$log" 2>&1 # started by doctor only where there is a GPU
  cat "$log"
  ! grep -qE '^bad +(libtorch|argosy-torch|GPU|between GPUs|NCCL) ' "$log" && grep -qE ' GPU 0 |"libtorch"' "$log"
}
part_nccl() {
  cases 60 "$kind/NcclAlone.*:$kind/GroupOfOne.*" gpu_test nccl
  local status=$?
  grep -h '^NCCL ' "$logs/nccl.log" | sort -u
  return $status
}
# The suite in some processes at once. The names of cases that failed stand above its line.
conformance_in_shards() {
  local worst=0 shard pids=() log passed
  for ((shard = 0; shard < shards; shard++)); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard timeout "$(at_most 150)" bash -c 'ours "$@"' run \
      nccl_conformance --gtest_filter="$conformance" > "$logs/ranks-$shard.log" 2>&1 &
    pids+=($!)
  done
  for shard in "${!pids[@]}"; do
    wait "${pids[$shard]}"
    local status=$? log=$logs/ranks-$shard.log
    [ $status = 0 ] || { worst=1 && tail -n 15 "$log" && echo "nccl_conformance, shard $shard: exit code $status"; }
  done
  grep -hE '^\[  FAILED  \] .*ms\)$' "$logs"/ranks-?.log
  passed=$(cat "$logs"/ranks-?.log | grep -c '^\[       OK ')
  echo "nccl_conformance: $passed cases passed in $shards shards"
  [ "$passed" != 0 ] || worst=1
  return $worst
}
# train_ranks NAME RANKS OPTIONS...: each rank is a host of its own to NCCL. Prints the weights' hash.
train_ranks() {
  local name=$1 ranks=$2 trainer
  trainer=$(find_program argosy-torch)
  # shellcheck disable=SC2016 # the rank's own
  ARGOSY_LOG=info timeout "$(at_most 60)" bash -c 'ours "$@"' run argosy launch -n "$ranks" --log_dir "" bash -c \
    'NCCL_HOSTID=rank-$RANK exec "$@"' rank "$trainer" train --model lenet --data "fashion_mnist:$fashion,limit=256" \
    --batch_size 8 --num_iters 6 --num_workers 1 --device $train_on --run_dir "$folder/$name" "${@:3}" \
    > "$logs/train-$name.log" 2>&1 || { tail -n 5 "$logs/train-$name.log" >&2; return 1; }
  [ "$train_on" = cpu ] || [ "$ranks" = 1 ] || grep -q "tensors of devices by NCCL" "$logs/train-$name.log" ||
    { echo "train-$name: not over NCCL" >&2; return 1; }
  ours argosy-torch checkpoint-hash "$folder/$name/model.pt" | cut -d' ' -f1
}
# With virtual ranks the weights are one file's, on any number of processes.
train_in_ranks() {
  local worst=0 ranks hashes=() fashion=$folder/fashion-mnist
  [ -d "$fashion" ] || fashion=/usr/share/datasets/fashion-mnist
  for ranks in 1 2 3; do
    hashes+=("$(train_ranks "virtual-$ranks" "$ranks" --virtual_ranks 4)") || worst=1
  done
  echo "argosy train of 4 virtual ranks on 1, 2 and 3 processes: ${hashes[*]}"
  [ "${hashes[0]}" = "${hashes[1]}" ] && [ "${hashes[0]}" = "${hashes[2]}" ] ||
    { worst=1 && echo "argosy train of 4 virtual ranks: the weights differ"; }
  train_ranks plain 2 > /dev/null || worst=1
  grep -hE 'tensors of devices by|finished after' "$logs/train-plain.log"
  return $worst
}
part_ranks() {
  local worst=0 latest=$((SECONDS + 150 < latest ? SECONDS + 150 : latest)) others
  cases 140 "$over_nccl" devices_processes_test ranks-trainings &
  others=$!
  conformance_in_shards || worst=1
  wait $others || worst=1
  train_in_ranks || worst=1
  return $worst
}
part_exact() {
  cases 90 "$kind/Exact.*" gpu_test exact
}
part_copies() {
  if [ $dry = 0 ]; then
    "$python" tests/gpu/card.py | tee -a "$figures" || return 1
  fi
  timeout "$(at_most 100)" bash -c 'ours "$@"' run gpu_copies --device "$copies_on" "${copies[@]}" > "$logs/copies.log" 2>&1
  local status=$?
  grep '^{' "$logs/copies.log" >> "$figures"
  [ $status = 0 ] || { tail -n 5 "$logs/copies.log"; return 1; }
}
# A loader's pictures a second: its variant, and a command that prints the line of picture_input.
loader() {
  local line variant=$1
  shift
  line=$("$@" 2>> "$logs/input.log" | grep '^{') || { echo "input: $variant failed"; tail -n 5 "$logs/input.log"; return 1; }
  echo "${line/\{/{\"part\": \"input\", \"variant\": \"$variant\", }" >> "$figures"
}
part_input() {
  local jpegs=$folder/jpegs worst=0
  ours gpu_pictures "$jpegs" "${pictures[@]}" || return 1
  local options=(--num_workers "$cores" --batch "$batch" --epochs "$epochs")
  loader argosy ours bench_picture_input flowers "$jpegs" "${options[@]}" --channels_last || worst=1
  if [ -n "$torch" ]; then
    loader "pytorch" "$python" benchmarks/peers/picture_input.py flowers "$jpegs" "${options[@]}" || worst=1
    loader "pytorch on tensors" "$python" benchmarks/peers/picture_input.py flowers "$jpegs" "${options[@]}" --tensors || worst=1
  fi
  in_turns fed "${precisions[0]}" --pictures "$jpegs" --num_workers "$cores" --seconds 60 "${fed[@]}" || worst=1
  return $worst
}
in_turns() { # part, precision and the options of steps.py, whose later ones win
  local peers=()
  [ -n "$torch" ] || peers=(--without_peers)
  timeout "$(at_most "$seconds")" "$python" tests/gpu/steps.py "$1" --model $model --precision "$2" --device "$device" --figures "$figures" --logs "$logs" \
    --ours "$(find_program bench_train_step)" --libraries "$libraries" "${peers[@]}" "${@:3}"
}
part_gpt() {
  [ $((seconds - SECONDS)) -ge 60 ] || { echo "gpt: no time is left"; return 77; }
  in_turns gpt "${precisions[0]}" --model "$gpt" --ours "$(find_program bench_sharded_step)" --seconds 180 "${gpt_steps[@]}"
}
part_steps() {
  local worst=0 left=${#precisions[@]} precision share
  [ $((seconds - SECONDS)) -ge $((60 * left)) ] || { echo "steps: no time is left"; return 77; }
  for precision in "${precisions[@]}"; do
    share=$(((seconds - SECONDS - 10) / left))
    in_turns steps "$precision" --seconds $((share > 1 ? share : 1)) "${steps[@]}" || worst=1
    left=$((left - 1))
  done
  return $worst
}

for part in "${parts[@]}"; do
  [ "$(type -t "part_$part")" = function ] || { echo "run.sh: no part is called $part" >&2; exit 2; }
done
for part in "${parts[@]}"; do
  echo "== $part"
  begun=$SECONDS
  "part_$part" < /dev/null
  case $? in
    0) result=passed ran=1 ;;
    77) result="not run" ;;
    *) result=failed failed=1 ran=1 ;;
  esac
  echo "== $part: $result ($((SECONDS - begun)) s)"
  echo "{\"part\": \"$part\", \"result\": \"$result\"}" >> "$figures"
done
[ $dry = 0 ] || echo "A dry run: the figures mean nothing."
python3 tests/gpu/table.py "$figures" || failed=1
tar -C "$out" -czf "$out/logs.tar.gz" logs && rm -rf "$logs"
[ $failed = 0 ] && [ $ran = 1 ]
