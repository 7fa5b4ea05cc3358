#!/usr/bin/env bash
# check_runs.sh ARGOSY_RUNS: the command as a user types it: in pipes, with slips of the pen, with runs that
# were killed. What the parts do in detail is tested beside their sources.
source "$(dirname "$0")/../check.sh" "argosy runs" "$1"
runs=$program
cd "$scratch" || exit 1
# run NAME LR STATE MINUTE LOSS…
run() {
  local name=$1 lr=$2 state=$3 minute=$4 step=0
  shift 4
  mkdir -p "runs/$name"
  cat >"runs/$name/run.json" <<END
{"format": 1, "name": "$name", "state": "$state", "started": "2026-03-01T12:0$minute:00.000Z", "ended": "2026-03-01T13:02:00.000Z",
 "command": ["argosy", "train", "--lr", "$lr"], "ranks": 2, "seed": 1,
 "options": {"model": "resnet18", "optimizer": {"lr": $lr}}, "host": {"name": "nowhere", "pid": 4}}
END
  for loss in "$@"; do
    step=$((step + 100))
    echo "{\"step\": $step, \"epoch\": 1, \"loss\": $loss, \"images_per_second\": 1500}"
    echo "{\"step\": $step, \"split\": \"eval\", \"metrics\": {\"accuracy\": 0.$step}}"
  done >"runs/$name/metrics.jsonl"
}

expect 0 "Usage: argosy runs <command>" --help
expect 2 "Usage: argosy runs <command>"
expect 2 "Did you mean argosy runs compare?" compair
for command in ls show compare; do
  expect 0 "Example" $command --help
  expect 2 "unknown option --jsno. Did you mean --json?" $command a b --jsno
done
expect 2 "RUN" show
expect 2 "one word too many: b" show a b
expect 1 "[runs.list] runs: is no folder" ls
mkdir runs
expect 0 "No runs in runs." ls

run fast 0.1 finished 1 2.0 1.0 0.5
run slow 0.01 stopped 2 2.0 1.8 1.7
expect 0 "fast" ls
"$runs" ls >table
[[ $(sed -n 2p table) == slow\ *stopped*2026-03-01\ 12:02*"1 h 00 min"*300*1.7*"0.3 Accuracy (eval)"* ]] || complain "ls shows: $(<table)"
LC_ALL=C grep -q '[^ -~]' table && complain "ls in a pipe is not plain text"
json '[r["name"] for r in j] == ["slow", "fast"] and j[1]["figures"]["train"]["loss"] == {"last": 0.5, "step": 300, "lowest": 0.5, "highest": 2.0}' ls
cp -r runs elsewhere
expect 0 "slow" ls --dir elsewhere
expect 0 "slow" ls elsewhere

expect 0 "Accuracy (eval)" show fast
expect 0 "optimizer.lr" show runs/fast
expect 0 "took" ls
"$runs" show fast | LC_ALL=C grep -q '[^ -~]' && complain "show in a pipe is not plain text"
"$runs" show fast | grep -q "^Loss (train) *0.5 *0.5 *\"\._" || complain "show draws no curve: $("$runs" show fast)"
expect 2 "no run \"fats\" in runs. Did you mean fast?" show fats
json 'j["config"]["options"]["optimizer"]["lr"] == 0.1 and j["state"] == "finished"' show fast

expect 0 "options.optimizer.lr  0.1" compare fast slow
expect 0 "+1.2 (+240.0 %)" compare fast slow
expect 0 "The same configuration." compare fast elsewhere/fast
[[ $("$runs" compare fast slow | head -n 1) == figure* ]] || complain "compare does not begin with the figures"
json 'j["differences"]["options.optimizer.lr"] == ["0.1", "0.01"] and j["figures"][1]["train"]["loss"]["last"] == 1.7' compare fast slow
expect 0 "Curves: both.html" compare fast slow --html both.html
grep -q "fast · train" both.html || complain "the page of both has not both"
expect 1 "[runs.write] nowhere/both.html: cannot write" compare fast slow --html nowhere/both.html

# Torn, strange and hostile folders.
printf '{"name": "to' >runs/slow/run.json
expect 1 "[runs.config] runs/slow/run.json: not JSON" ls
expect 1 "fast" ls
expect 1 "not JSON" show slow
printf '{"step": 400, "lo' >>runs/fast/metrics.jsonl
expect 0 "Loss (train)" show fast
mkdir "runs/$(printf 'a\033[31mb')" && echo '{}' >"runs/$(printf 'a\033[31mb')/run.json"
"$runs" ls 2>&1 | grep -q "$(printf '\033')" && complain "ls lets a name speak to the terminal"
"$runs" ls >/dev/full 2>/dev/null
[[ $? -eq 1 ]] || complain "a full disk is no failure"
[[ $failed -eq 0 ]] && echo "argosy runs: as documented"
exit "$failed"
