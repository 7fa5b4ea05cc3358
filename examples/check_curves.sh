#!/usr/bin/env bash
# check_curves.sh ARGOSY BATCH MOST BOUND DATA PROGRAM [ARGUMENT…]: trains alone with BATCH samples a
# step, and on two processes with half of them each. Both under the launcher, which tells OpenBLAS the
# processor: other kernels round otherwise, and the curves would part by that too. The training loss of
# the last epoch must be at most MOST both times, and the two curves must differ by at most BOUND, a part
# of the larger value, in each epoch. DATA: a file or a folder, the program's first argument; of a
# CSV.gz FILE:N takes the first N lines below the header.
set -euo pipefail
argosy=$1 batch=$2 most=$3 bound=$4 data=$5 program=$6
shift 6
scratch=$(mktemp -d)
alone=
trap '[[ -z $alone ]] || kill "$alone" 2>/dev/null; rm -rf "$scratch"' EXIT
cd "$scratch"
if [[ $data == *:* ]]; then
  # awk reads to the end, so that zcat is not cut off.
  zcat "${data%:*}" | awk -v lines="${data##*:}" 'NR <= lines + 1' >data.csv
  data=data.csv
fi

# Both at once, for the first leaves a core free. Each in a folder of its own, where it writes what it writes.
export OMP_NUM_THREADS=1
mkdir a
case $data in /*) ;; *) ln -s "../$data" "a/$data" ;; esac
(cd a && exec "$argosy" launch --nproc_per_node 1 --log_dir "" "$program" "$data" --batch_size "$batch" "$@") \
  >alone.txt &
alone=$!
"$argosy" launch --nproc_per_node 2 --log_dir "" "$program" "$data" --batch_size "$((batch / 2))" "$@" | tee two.txt
wait "$alone" || { cat alone.txt; echo "check_curves: the run on one process failed"; exit 1; }
alone=
cat alone.txt

for run in alone two; do
  sed -nE 's/.*epoch +[0-9]+: (training|loss) ([^,]+),.*/\2/p' $run.txt >$run.curve
done
paste alone.curve two.curve | awk -v most="$most" -v bound="$bound" '
  NF != 2 || $1 !~ /^[0-9.e+-]+$/ || $2 !~ /^[0-9.e+-]+$/ { print "check_curves: no two numbers: " $0; bad = 1; next }
  {
    larger = $1 > $2 ? $1 : $2
    apart = ($1 > $2 ? $1 - $2 : $2 - $1) / larger
    if (apart > widest) widest = apart
    last = larger
  }
  END {
    printf "check_curves: last training loss %g, wanted at most %g; the curves differ by %.3f, at most %g\n", last, most, widest, bound
    exit bad || NR == 0 || last > most || widest > bound
  }'
