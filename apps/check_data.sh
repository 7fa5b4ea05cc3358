#!/usr/bin/env bash
# check_data.sh ARGOSY_DATA TEST_DATA: the command as a user types it: in pipes, several at once, with
# slips of the pen. What the parts do in detail is tested beside their sources.
set -uo pipefail
data=$1
samples=$2
here=$(dirname "$(realpath "$0")")
scratch=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill "$server"; rm -rf "$scratch"' EXIT
export ARGOSY_DATA_HOME=$scratch/home
unset ARGOSY_DATA_MIRROR ARGOSY_PROGRESS
failed=0
complain() {
  echo "$*"
  failed=1
}
# expect CODE WORDS ARGUMENTS…: runs it, compares the exit code, looks for the words in its output.
expect() {
  local code=$1 words=$2 output rc
  shift 2
  output=$("$data" "$@" 2>&1) && rc=0 || rc=$?
  if [[ $rc -ne $code || $output != *"$words"* ]]; then
    complain "argosy data $*: expected exit code $code and \"$words\", got $rc and: $output"
  fi
}
# json PYTHON ARGUMENTS…: runs it with --json; the expression over `j` must hold for what it prints.
json() {
  local expression=$1
  shift
  "$data" "$@" --json >"$scratch/json" 2>"$scratch/error"
  python3 -c "import json, sys; j = json.load(sys.stdin); assert $expression, j" <"$scratch/json" ||
    complain "argosy data $* --json: expected $expression $(<"$scratch/error")"
}

expect 0 "Usage: argosy data <command>" --help
expect 2 "Usage: argosy data <command>"
expect 2 "Did you mean argosy data fetch? See" fetsh
for command in fetch verify; do
  expect 0 "Example: argosy data $command mnist" $command --help
  expect 2 "Did you mean mnist?" $command mnits
  expect 2 "NAME" $command
done
expect 2 "unknown option --jsno. Did you mean --json?" verify mnist --jsno
expect 2 "one word too many: again" fetch mnist again
expect 2 "keypoints cannot be fetched. Kaggle" fetch keypoints
expect 2 "docs/guides/errors.md#download.fetch" fetch folder
expect 1 "4 missing" verify mnist
json 'j["ok"] is False and {f["state"] for f in j["files"]} == {"missing"}' verify mnist

# A folder as a mirror, then nothing to do; what was fetched is found by verify.
expect 0 "2 files in $scratch/home/flowers102, 15 kB, fetched" \
  fetch flowers102 --mirror "$samples" --file imagelabels.mat --file setid.mat
expect 0 "there already, and right" fetch flowers102 --file setid.mat
json '[f["was_there"] for f in j["files"]] == [True]' fetch flowers102 --file setid.mat
expect 1 "2 fine, 1 missing, 0 damaged" verify flowers102
expect 0 "fine     setid.mat" verify "$scratch/home/flowers102/setid.mat"
printf x >>"$scratch/home/flowers102/setid.mat"
expect 1 "damaged  setid.mat        expected 14989 bytes, got 14990" verify flowers102
expect 1 "is there, but is not the published file" fetch flowers102 --mirror "$samples" --file setid.mat
expect 0 "fetched" fetch flowers102 --mirror "$samples" --file setid.mat --replace
expect 1 "Couldn't open file" fetch flowers102 --mirror "$samples/nowhere" --file 102flowers.tgz

# A server on the loopback.
python3 "$here/check_data_server.py" "$samples" "$scratch/requests" >"$scratch/port" &
server=$!
for ((i = 0; i < 200; ++i)); do
  [[ -s $scratch/port ]] && break
  sleep 0.05
done
url=http://127.0.0.1:$(<"$scratch/port")
rm -rf "$scratch/home"

# Four that start cold at once ask once; all find the file.
pids=()
for i in 1 2 3 4; do
  "$data" fetch flowers102 --mirror "$url/slow" --file setid.mat >"$scratch/cold.$i" 2>&1 &
  pids+=($!)
done
for pid in "${pids[@]}"; do
  wait "$pid" || complain "one of four cold starts failed: $(cat "$scratch"/cold.*)"
done
[[ $(wc -l <"$scratch/requests") -eq 1 ]] || complain "four cold starts: expected one request, got: $(<"$scratch/requests")"
[[ $(grep -l "is fetching into .*: waiting" "$scratch"/cold.* | wc -l) -ge 1 ]] ||
  complain "four cold starts: nobody says that it waits: $(cat "$scratch"/cold.*)"
cmp "$samples/flowers102/setid.mat" "$scratch/home/flowers102/setid.mat" || failed=1

# In a pipe there are no escapes and no carriage returns.
rm -rf "$scratch/home"
"$data" fetch flowers102 --mirror "$url/slow" --file setid.mat 2>&1 | grep -q $'[\r\x1b]' &&
  complain "a pipe got control characters"

rm -rf "$scratch/home" "$scratch/requests"
expect 0 "trying again" fetch flowers102 --mirror "$url/drop" --file setid.mat
grep -q "/drop/flowers102/setid.mat bytes=7494-" "$scratch/requests" ||
  complain "a dropped connection was not resumed: $(<"$scratch/requests")"
rm -rf "$scratch/home"
expect 1 "expected MD5 a5357ecc9cb78c4bef273ce3793fc85c, got " \
  fetch flowers102 --mirror "$url/corrupt" --file setid.mat --tries 1
[[ -z $(ls "$scratch/home/flowers102") ]] || complain "corrupt bytes stayed: $(ls "$scratch/home/flowers102")"
expect 1 "HTTP status 404" fetch flowers102 --mirror "$url/plain" --file 102flowers.tgz

# Killed in the middle: the part stays, no lock stays, the next goes on.
rm -rf "$scratch/home"
"$data" fetch flowers102 --mirror "$url/slow" --file setid.mat >/dev/null 2>&1 &
victim=$!
for ((i = 0; i < 200; ++i)); do
  [[ -s $scratch/home/flowers102/setid.mat.part ]] && break
  sleep 0.01
done
kill -9 "$victim"
wait "$victim" 2>/dev/null
expect 0 "fetched" fetch flowers102 --mirror "$url/plain" --file setid.mat
tail -n 1 "$scratch/requests" | grep -q "bytes=" || complain "what a killed process left was not used"

if error=$("$data" --help 2>&1 >/dev/full) || [[ $error != *"No space left"* ]]; then
  complain "argosy data --help >/dev/full: expected a failure that says why, got: $error"
fi
exit "$failed"
