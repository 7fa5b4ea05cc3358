#!/usr/bin/env bash
# check_data.sh ARGOSY_DATA TEST_DATA: the command as a user types it: in pipes, several at once, with
# slips of the pen. What the parts do in detail is tested beside their sources.
source "$(dirname "$0")/../check.sh" "argosy data" "$1"
data=$program
samples=$2
here=$(dirname "$(realpath "$0")")
server=
trap '[[ -z $server ]] || kill "$server"; rm -rf "$scratch"' EXIT
export ARGOSY_DATA_HOME=$scratch/home
unset ARGOSY_DATA_MIRROR ARGOSY_PROGRESS

expect 0 "Usage: argosy data <command>" --help
for command in "" fetch verify info pack; do
  long=$("$data" $command --help | awk 'length($0) > 80')
  [[ -z $long ]] || complain "argosy data $command --help has lines of more than 80 columns: $long"
done
[[ $("$data" pack --help) == *"Usage: argosy data pack [options] NAME|PATH [PATH] OUT"$'\n'* ]] ||
  complain "argosy data pack --help: $("$data" pack --help)"
expect 2 "Usage: argosy data <command>"
expect 2 "Did you mean argosy data fetch? See" fetsh
for command in fetch verify info pack; do
  expect 0 "Example" $command --help
  out=$([[ $command == pack ]] && echo "$scratch/x.rec")
  expect 2 "Did you mean mnist?" $command mnits $out
  expect 2 "NAME" $command
done
expect 2 "unknown option --jsno. Did you mean --json?" verify mnist --jsno
expect 2 "one word too many: again" fetch mnist again
expect 2 "keypoints cannot be fetched. Kaggle" fetch keypoints
expect 2 "docs/guides/errors.md#datasets.fetch" fetch folder
expect 1 "4 missing" verify mnist
json 'j["ok"] is False and {f["state"] for f in j["files"]} == {"missing"}' verify mnist

# A folder as a mirror, then nothing to do; what was fetched is found by verify.
expect 0 "2 files in $scratch/home/flowers102, 15.5 kB, fetched" \
  fetch flowers102 --mirror "$samples" --file imagelabels.mat --file setid.mat
expect 0 "there already, and right" fetch flowers102 --file setid.mat
json '[f["was_there"] for f in j["files"]] == [True]' fetch flowers102 --file setid.mat
expect 1 "2 fine, 1 missing, 0 damaged" verify flowers102
expect 0 "fine     setid.mat" verify "$scratch/home/flowers102/setid.mat"
printf x >>"$scratch/home/flowers102/setid.mat"
expect 1 "damaged  setid.mat        expected 14989 bytes, got 14990" verify flowers102
(cd "$scratch/home/flowers102" && expect 1 "argosy data fetch flowers102 --to . --replace" verify setid.mat; exit "$failed") || failed=1
mkdir "$scratch/it's here" && cp "$samples/flowers102/setid.mat" "$scratch/it's here"
expect 1 "argosy data fetch flowers102 --to '$scratch/it'\''s here'" verify "$scratch/it's here"
expect 2 "[datasets.name] unknown data set" verify "$(printf 'a%.0s' {1..5000})"
expect 1 "is there, but is not the published file" fetch flowers102 --mirror "$samples" --file setid.mat
expect 0 "fetched" fetch flowers102 --mirror "$samples" --file setid.mat --replace
expect 1 "Couldn't open file" fetch flowers102 --mirror "$samples/nowhere" --file 102flowers.tgz

# What a set holds: by name and path, or by a path that says what it is.
expect 0 "samples   " info cifar10 "$samples/cifar10/cifar-10-python.tar.gz"
expect 0 "airplane" info "$samples/cifar10"
expect 1 "[datasets.open] $scratch/home/mnist: mnist is not there. To bring it: argosy data fetch mnist" info mnist
expect 1 "Kaggle" info keypoints
expect 2 "Did you mean cifar10?" info cifar1O "$samples/cifar10"
expect 2 "neither its name nor its content says what it is" info "$here/check_data.sh"
json 'j["classes"] == 10 and sum(j["per_class"]) == j["samples"] and j["shape"] == [32, 32, 3]' info cifar10 "$samples/cifar10"
json 'j["classes"] == 0 and j["shape"] == [96, 96, 1] and len(j["point_names"]) == 15' info "$samples/keypoints"
"$data" info cifar10 "$samples/cifar10" | LC_ALL=C grep -q '[^ -~]' && complain "info in a pipe is not plain text"
expect 0 "classes   10" info cifar10 "$samples/cifar10" --sheet "$scratch/sheet.html"
[[ $(grep -c '<img alt="airplane" src="data:image/png;base64,iVBORw' "$scratch/sheet.html") -gt 0 ]] ||
  complain "the page shows no airplane"
expect 0 "classes   10" info cifar10 "$samples/cifar10" --sheet "$scratch/sheet.html" # over its own
expect 2 "sheet.png: expected a name that ends with .html" info cifar10 "$samples/cifar10" --sheet "$scratch/sheet.png"
expect 1 "No such file or directory" info cifar10 "$samples/cifar10" --sheet "$scratch/no/such/sheet.html"

# Packed, the same samples come back; damage is found.
expect 0 "$scratch/cifar.rec: " pack cifar10 "$samples/cifar10" "$scratch/cifar.rec"
expect 0 "records of cifar10 in $scratch/cifar.rec" info "$scratch/cifar.rec"
expect 0 "all whole" verify "$scratch/cifar.rec"
"$data" info cifar10 "$samples/cifar10" --json --all >"$scratch/before"
"$data" info "$scratch/cifar.rec" --json --all >"$scratch/after"
python3 -c "
import json, sys
before, after = (json.load(open(path)) for path in sys.argv[1:])
for key in ('samples', 'per_class', 'shape', 'class_names', 'mean', 'std'):
    assert before[key] == after[key], key
" "$scratch/before" "$scratch/after" || complain "packing changed the samples"
json 'j["splits"] == {"train": j["samples"] - 3, "test": 3}' info "$scratch/cifar.rec"
expect 0 "3 samples" pack "$scratch/cifar.rec" "$scratch/test.rec" --split test
json 'j["splits"] == {"test": 3}' info records "$scratch/test.rec"
printf x | dd of="$scratch/cifar.rec" bs=1 seek=50000 conv=notrunc status=none
expect 1 "1 damaged" verify "$scratch/cifar.rec"
expect 1 "[formats.records] $scratch/cifar.rec: damaged: the record's checksum is wrong" info "$scratch/cifar.rec"
expect 1 "  pictures  32 x 32 pixels, 3 channels" info "$scratch/cifar.rec" --sheet "$scratch/damaged.html"
json 'j["unusable"] == 1 and len(j["first_unusable"]) == 1 and sum(j["per_class"]) == j["samples"] - 1' info "$scratch/cifar.rec"
expect 1 "samples are damaged, nothing was written. To pack the others: --skip_damaged" pack "$scratch/cifar.rec" "$scratch/rest.rec"
[[ ! -e $scratch/rest.rec ]] || complain "a pack of damaged records left a file"
expect 0 "; 1 damaged left out" pack "$scratch/cifar.rec" "$scratch/rest.rec" --skip_damaged
expect 0 "all whole" verify "$scratch/rest.rec"
printf X | dd of="$scratch/cifar.rec" bs=1 conv=notrunc status=none
expect 1 "not a record file: expected 32 bytes of header" verify records "$scratch/cifar.rec"
printf A | dd of="$scratch/cifar.rec" bs=1 conv=notrunc status=none
json 'j["ok"] is False and j["damaged"] == 1' verify "$scratch/cifar.rec"
expect 2 'there is no split "valid" in' pack cifar10 "$samples/cifar10" "$scratch/x.rec" --split valid
expect 2 "$scratch is a folder: expected the name of a record file, the last word, to write" pack cifar10 "$scratch"
cp "$samples/cifar10/cifar-10-python.tar.gz" "$scratch/mine.tar.gz"
expect 2 "mine.tar.gz is there and is not a record file" pack "$samples/cifar10" "$scratch/mine.tar.gz"
cmp -s "$samples/cifar10/cifar-10-python.tar.gz" "$scratch/mine.tar.gz" || complain "pack wrote over an archive"
cp "$scratch/cifar.rec" "$scratch/mine.html"
expect 2 "mine.html is there and is not a page" info "$scratch/cifar.rec" --sheet "$scratch/mine.html"
expect 1 "No such file or folder" info "$scratch/nowhere"
# Neither waits for a reader or writer of a pipe.
mkfifo "$scratch/pipe" "$scratch/pipe.html"
expect 2 "pipe is not a regular file" pack cifar10 "$samples/cifar10" "$scratch/pipe"
expect 2 "pipe.html: expected the name of a page to write, and it is not a regular file" info cifar10 "$samples/cifar10" --sheet "$scratch/pipe.html"

# A picture that ends early is named before anything is written.
mkdir -p "$scratch/pictures/a"
grep -o 'base64,[^"]*' "$scratch/sheet.html" | head -n 1 | cut -c 8- | base64 -d >"$scratch/pictures/a/whole.png"
head -c 2000 "$scratch/pictures/a/whole.png" >"$scratch/pictures/a/torn.png"
expect 1 "damaged  [image.png] $scratch/pictures/a/torn.png" pack folder "$scratch/pictures" "$scratch/x.rec"
[[ ! -e $scratch/x.rec ]] || complain "a damaged picture was packed"
expect 0 "2 samples" pack folder "$scratch/pictures" "$scratch/all.rec" --no_check
expect 0 "1 sample, " pack folder "$scratch/pictures" "$scratch/some.rec" --skip_damaged
expect 1 "/no/such" pack cifar10 "$samples/cifar10" /no/such/x.rec
[[ ! -e $scratch/x.rec ]] || complain "a pack that failed left a file"

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
{ kill -9 "$victim" && wait "$victim"; } 2>/dev/null
expect 0 "fetched" fetch flowers102 --mirror "$url/plain" --file setid.mat
tail -n 1 "$scratch/requests" | grep -q "bytes=" || complain "what a killed process left was not used"

expect_full_disk
exit "$failed"
