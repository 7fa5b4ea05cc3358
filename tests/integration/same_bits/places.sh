# Sourced, with $argosy and $program set: runs one training of a recipe at a place.
#
# A place says who computes: shm:3 and gloo:3 are three processes, threads:3 are three ranks of one process, hosts:1+1+2
# are three hosts with one, one and two processes. The caller has made the hosts.
#
# A recipe is seven words: LOOP MODEL OPTIMIZER PRECISION VIRTUAL_RANKS ACCUMULATE SEED, as "fit cnn adam f32 8 1 1".
# LOOP is fit, fleet or wrapper, for same_bits_program, or train, for `argosy train`.
tests=$(dirname "${BASH_SOURCE[0]}")/../..
. "$tests/support/namespaces.sh"
export OMP_NUM_THREADS=1 ARGOSY_TOKEN=secret PICTURES=$scratch/pictures
"$tests/data/fewer_pictures.sh" /usr/share/datasets/fashion-mnist "$PICTURES" 400 100 || exit 1

# launch_at PLACE COMMAND...: runs the command's ranks there. What hangs is ended after a quarter of an hour.
launch_at() {
  local place=$1 ips='' i pid parts pids=() code=0
  shift
  case $place in
    # By the launcher, which chooses the kernels.
    threads:*) timeout 900 "$argosy" launch -n 1 --log_dir "" "$@" --threads "${place#*:}" ;;
    hosts:*)
      IFS=+ read -ra parts <<<"${place#*:}"
      for ((i = 1; i <= ${#parts[@]}; ++i)); do
        ips+=${ips:+,}10.77.0.$i
      done
      for ((i = 0; i < ${#parts[@]}; ++i)); do
        ip netns exec "${hosts[i]}" timeout 900 "$argosy" launch --ips "$ips" -n "${parts[i]}" --log_dir "" "$@" &
        pids+=($!)
      done
      for pid in "${pids[@]}"; do
        wait "$pid" || code=$?
      done
      return "$code"
      ;;
    *) ARGOSY_BACKEND=${place%:*} timeout 900 "$argosy" launch -n "${place#*:}" --log_dir "" "$@" ;;
  esac
}

# train_at PLACE FOLDER UPDATES STOP RECIPE...: trains, or goes on in FOLDER, up to update STOP (0: to the end). Prints
# the hash and the digests of its parts. A failure is told on standard error.
train_at() {
  local place=$1 folder=$2 updates=$3 stop=$4
  shift 4
  local loop=$1 model=$2 optimizer=$3 precision=$4 ranks=$5 micros=$6 seed=$7 options
  mkdir -p "$folder"
  if [[ $loop == train ]]; then
    local amp=off name=mnist_cnn
    [[ $precision == bf16 ]] && amp=bfloat16
    [[ $model == resnet18 ]] && name="resnet18 --image_size 32"
    # shellcheck disable=SC2206  # a name with an option
    options=(--model $name --data "fashion_mnist:$PICTURES" --augment crop:padding=3 --optimizer "$optimizer" --lr 0.004
      --schedule plateau:patience=0,factor=0.7,threshold=0.3,min_lr=5e-4 --clip_norm 0.5 --ema 0.95 --amp "$amp"
      --virtual_ranks "$ranks" --accumulate "$micros" --seed "$seed" --batch_size 4 --num_workers 3
      --epochs 1000 --num_iters "$((stop > 0 ? stop : updates))" --log_freq 1000 --resume auto --run_dir "$folder")
    launch_at "$place" "$argosy" train "${options[@]}" >"$folder/out" 2>&1 && hash_run "$folder" && return
  else
    options=(--loop "$loop" --model "$model" --optimizer "$optimizer" --precision "$precision"
      --virtual_ranks "$ranks" --accumulate "$micros" --seed "$seed"
      --updates "$updates" --stop "$stop" --folder "$folder/checkpoints")
    launch_at "$place" "$program" "${options[@]}" >"$folder/out" 2>&1 &&
      grep -q 'hash [0-9a-f]\{16\}' "$folder/out" && sed -n 's/.*hash \([0-9a-f]\{16\} \)/\1/p' "$folder/out" && return
  fi
  { echo "failed at $place: $*"; tail -n 20 "$folder/out"; } >&2
  return 1
}

# The tensors of the newest checkpoint, the weights that the run leaves, which are the average, and its last figures.
hash_run() { # FOLDER
  local last part figures text=''
  last=$(compgen -G "$1/checkpoints/step-*" | sort | tail -n 1)
  for part in model optimizer ema; do
    [[ -s $last/$part.safetensors ]] || return
    text+=" $part $(sha256sum <"$last/$part.safetensors" | head -c 16)"
  done
  text+=" weights $("$argosy" checkpoint hash "$1/model.pt" | grep -o '^[0-9a-f]\{16\}')" || return
  figures=$(sed -n 's/.*finished after \([0-9]* updates\), [^:]*: /\1 /p' "$1/out")
  [[ -n $figures ]] || return
  text+=" figures $(sha256sum <<<"$figures" | head -c 16)"
  echo "$(sha256sum <<<"$text" | head -c 16)$text"
}
