#!/usr/bin/env bash
# check_clicks.sh ARGOSY: argosy train, evaluate and predict of models of clicks as a user types them, with servers and
# alone. A server is killed in the middle; what is learned is held against the truth of the log.
source "$(dirname "$0")/../check.sh" argosy "$1"
source "$(dirname "$0")/check_results.sh"
servers=(launch --server_num 2 --worker_num 2)

# A log whose truth is known.
expect 2 '--lines is required' data criteo --out x.tsv
expect 2 'Pack them afterwards' data criteo --lines 1 --out x.tsv.gz
"$program" data criteo --lines 40000 --out clicks.tsv --json >"$results/drawn" 2>/dev/null || complain "argosy data criteo failed"
"$program" data criteo --lines 8000 --seed 2 --out test.tsv --json >"$results/truth" 2>/dev/null || complain "argosy data criteo failed"
holds 'j["lines"] == 40000 and 0.84 < j["auc_of_truth"] < 0.88 and 0 < j["clicks"] < 40000' drawn
expect 2 'that is there already' data criteo --lines 1 --out test.tsv
[[ $(wc -l <clicks.tsv) == 40000 ]] || complain "clicks.tsv has $(wc -l <clicks.tsv) lines"

# What is wrong, by its name and with a reason.
model=(train --model deepfm:dim=8,hidden=32x16 --data criteo:clicks.tsv --verbose 0)
expect 2 '--schedule needs the length of an epoch, and a log is a stream that nobody has counted. Leave it out for deepfm' \
  "${model[@]}" --schedule cosine
for option in "--mesh dp=2" "--traffic dgc" "--virtual_ranks 2"; do
  # shellcheck disable=SC2086 # an option and its value
  expect 2 'it lies on servers: argosy launch --server_num N --worker_num M' "${model[@]}" $option
done
expect 2 '--augment is about pictures' "${model[@]}" --augment flip
expect 2 '--sequence_length is about text' "${model[@]}" --sequence_length 8
expect 2 '--ema averages weights of a process' "${model[@]}" --ema 0.9
expect 2 '--clip_norm is about the norm of all gradients' "${model[@]}" --clip_norm 1
expect 2 '--staleness 3 is about --mode half_async, and the mode is async' "${model[@]}" --mode async --staleness 3
expect 2 'sync, async, half_async' "${model[@]}" --mode geo
expect 2 'add --val criteo:FILE' "${model[@]}" --eval_freq 2
expect 2 '--num_workers is about loader threads' "${model[@]}" --num_workers 4
expect 2 '--resume goes on from the checkpoints of a run' "${model[@]}" --run_dir none --resume auto
expect 1 'no_val.tsv' "${model[@]}" --val criteo:no_val.tsv --run_dir no_val
[[ ! -e no_val/metrics.jsonl ]] || complain "it trained before it looked at --val"
: >empty.tsv
expect 1 '--val names a log without a line' "${model[@]}" --val criteo:empty.tsv --run_dir none
expect 1 'limit=100 leaves 100 lines' train --model deepfm --data criteo:clicks.tsv,limit=100 --batch_size 200 --run_dir none
expect 1 'No such file or folder' "${model[@]}" --pretrained nowhere --run_dir none
expect 2 'hidden=4xx: expected widths' train --model deepfm:hidden=4xx --data criteo:clicks.tsv
expect 2 'deepfm has no option "width"' train --model deepfm:width=4 --data criteo:clicks.tsv
expect 2 '--data text:clicks.tsv: expected a log of clicks' train --model wide_deep --data text:clicks.tsv
expect 2 'is a log of clicks, from which recommendation models learn' train --model lenet --data criteo:clicks.tsv
expect 2 '--mode is about models of clicks' train --model gpt:layers=1,width=64 --data text:clicks.tsv --mode async
expect 1 'none.tsv' train --model deepfm --data criteo:none.tsv --run_dir none
expect 1 'are no batch of 70000' "${model[@]}" --batch_size 70000 --run_dir none
expect 1 'no whole checkpoint' "${model[@]}" --run_dir nothing --resume must
expect 2 'its rows are made as their ids come' estimate --model deepfm --hosts 1
"$program" launch -n 2 "$program" "${model[@]}" >"$results/out" 2>&1 && complain "two processes without servers trained"
grep -q 'Type argosy launch --server_num 1 --worker_num 2 argosy train' "$results/out" ||
  complain "two processes without servers: $(tail -n 3 "$results/out")"
"$program" "${servers[@]}" "$program" train --model lenet --data criteo:clicks.tsv >"$results/out" 2>&1 &&
  complain "lenet trained on servers"
grep -q 'lenet has no rows for servers' "$results/out" || complain "lenet on servers: $(tail -n 3 "$results/out")"
json plan "${model[@]}" --dry_run
holds 'j["training"] == {"processes": 1, "servers": 0, "mode": "sync", "samples_per_update": 32}' plan
expect 0 'deepfm ' train --list models
expect 0 'criteo ' train --list data

# In sync, two servers and two workers, and one process with batches of both, whose bits differ by sums alone.
sync=("${model[@]}" --val criteo:test.tsv --epochs 1 --batch_size 200)
json two "${servers[@]}" --log_dir logs "$program" "${sync[@]}" --run_dir two
json one "${model[@]}" --val criteo:test.tsv --epochs 1 --batch_size 400 --run_dir one
holds 'j["steps"] == 100 and j["processes"] == 2 and j["servers"] == 2 and j["weights"].endswith("/two/checkpoints/step-000000100")' two
holds 'j[1]["servers"] == 0 and all(abs(j[0]["result"][n] - j[1]["result"][n]) < 2e-3 for n in j[0]["result"])' two one
holds 'j[1]["auc_of_truth"] - 0.16 < j[0]["result"]["eval_auc"] < j[1]["auc_of_truth"]' two truth

# A server is killed in the middle, and it is started again: the same bits. Then the whole job is, and resumes.
kill_a_server() { # DIR
  local pid=
  for ((i = 0; i < 600; ++i)); do
    [[ -e $1/checkpoints/step-000000040/manifest.json ]] && break
    sleep 0.05
  done
  for process in /proc/[0-9]*; do
    if tr '\0' '\n' <"$process/environ" 2>/dev/null | grep -qx "ARGOSY_LOG_DIR=$scratch/killed_logs" &&
      tr '\0' '\n' <"$process/environ" 2>/dev/null | grep -qx TRAINING_ROLE=PSERVER; then
      pid=${process#/proc/}
    fi
  done 2>/dev/null
  [[ -n $pid ]] && kill -9 "$pid" && echo killed >"$results/killed"
}
kill_a_server "$scratch/killed" &
json killed "${servers[@]}" --max_restarts 2 --log_dir "$scratch/killed_logs" "$program" "${sync[@]}" --save_freq 40 --run_dir killed
wait
[[ -e $results/killed ]] || complain "no server was killed"
holds 'j[0]["result"] == j[1]["result"]' two killed
grep -q '"gone"' killed/servers.json || grep -q '"alive"' killed/servers.json || complain "servers.json: $(cat killed/servers.json)"
json cut "${servers[@]}" --log_dir logs "$program" "${sync[@]}" --run_dir cut --num_iters 50
json resumed launch --server_num 1 --worker_num 2 --log_dir logs "$program" "${sync[@]}" --run_dir cut --resume must
holds 'j[1]["steps"] == 100 and j[0]["result"]["eval_auc"] == j[1]["result"]["eval_auc"] and j[0]["result"]["eval_loss"] == j[1]["result"]["eval_loss"]' two resumed
json again "${servers[@]}" --log_dir logs "$program" "${sync[@]}" --run_dir cut --num_iters 10
holds 'j["steps"] == 10' again
ls -d cut/checkpoints/earlier-1/step-000000100 >/dev/null || complain "an earlier training's checkpoints are gone"

# Another number of workers and another batch go on behind the lines that were learned from: half of 40000 by 400 alone,
# and the rest by 2 x 100.
json half "${model[@]}" --val criteo:test.tsv --epochs 1 --batch_size 400 --run_dir halves --num_iters 50
json rest "${servers[@]}" --log_dir logs "$program" "${model[@]}" --val criteo:test.tsv --epochs 1 --batch_size 100 \
  --run_dir halves --resume must
holds 'j[0]["steps"] == 50 and j[1]["steps"] == 150' half rest

# What is done is neither evaluated nor saved again.
saved=$(stat -c %y one/checkpoints/step-000000100/manifest.json)
json done "${model[@]}" --val criteo:test.tsv --epochs 1 --batch_size 400 --run_dir one --resume must
holds 'j[1]["steps"] == 100 and j[0]["result"]["eval_auc"] == j[1]["result"]["eval_auc"]' one done
[[ $(grep -c '"eval"' one/metrics.jsonl) == 1 ]] || complain "one/ was evaluated again: $(grep '"eval"' one/metrics.jsonl)"
[[ $saved == "$(stat -c %y one/checkpoints/step-000000100/manifest.json)" ]] || complain "one/ was saved again"

# A restart resumes what its own job has saved, and not what another one has left in the folder.
start() { # FILE JOB RESTARTS STEPS
  ARGOSY_RUN_ID=$2 ARGOSY_RESTART_COUNT=$3 json "$1" "${model[@]}" --batch_size 100 --run_dir jobs --num_iters "$4"
}
start first a 0 12
echo '{"rank": 1}' >jobs/rank1.json
echo '[{"server": 0}]' >jobs/servers.json
start second b.restart1 1 5
holds 'j["steps"] == 5' second
for file in checkpoints/earlier-1/step-000000012 earlier.rank1.json earlier.servers.json; do
  [[ -e jobs/$file ]] || complain "what another job has left in jobs/ is not moved away: no $file"
done
start third b.restart2 2 8
holds 'j["steps"] == 8' third
[[ -e jobs/checkpoints/step-000000005 ]] || complain "a restart began anew"

# A worker's failure is the run's, also where the launcher ends the first one.
{ head -n 649 clicks.tsv; echo 'no line'; tail -n +650 clicks.tsv; } >damaged.tsv
"$program" "${servers[@]}" --log_dir logs "$program" train --model deepfm:dim=2,hidden=4 --data criteo:damaged.tsv --batch_size 200 \
  --run_dir damaged --verbose 0 >"$results/out" 2>&1 && complain "a damaged log was learned from"
python3 - <<'END' || complain "damaged/run.json: $(grep -E '"state"|"message"' damaged/run.json)"
import json
run = json.load(open("damaged/run.json"))
assert run["state"] == "failed" and "rank 1" in run["message"] and "line 650" in run["message"], run
END

# The records.
for file in run.json recipe.json metrics.jsonl servers.jsonl servers.json rank0.json rank1.json index.html; do
  [[ -e two/$file ]] || complain "two/ has no $file"
done
python3 - <<'END' || complain "servers.jsonl of killed/: $(tail -n 4 killed/servers.jsonl)"
import json
lines = [json.loads(line) for line in open("killed/servers.jsonl")]
assert {line["split"] for line in lines} <= {"server 0", "server 1"} and lines
for line in lines:
    assert line["metrics"]["columns_rows"] >= 0 and line["metrics"]["workers_apart"] <= 1, line
    assert line["metrics"]["columns_bytes"] > 0, line
last = {line["split"]: line for line in lines if line["step"] == 100}
assert sum(line["metrics"]["columns_rows"] for line in last.values()) > 5000, last
END
grep -q '<h2>Servers</h2>' two/index.html || complain "the page shows no servers"
expect 0 'workers_apart' runs show "$scratch/two"

# Evaluate and predict, without servers, are those of the training's end; the newest checkpoint stands for the run.
json evaluated evaluate two
holds 'abs(j[0]["result"]["eval_auc"] - j[1]["result"]["auc"]) < 1e-6 and abs(j[0]["result"]["eval_loss"] - j[1]["result"]["loss"]) < 1e-6 and j[1]["samples"] == 8000' two evaluated
json checkpoint evaluate two/checkpoints/step-000000100 --data criteo:test.tsv --batch_size 999
holds 'abs(j[0]["result"]["auc"] - j[1]["result"]["auc"]) < 1e-6' evaluated checkpoint
expect 0 '8000 predictions in two.csv' predict two --out two.csv
expect 0 '500 predictions in few.jsonl' predict two --data criteo:test.tsv,limit=500 --out few.jsonl
"$program" predict two --data criteo:test.tsv,limit=3 >printed.csv 2>"$results/err" || complain "predict: $(cat "$results/err")"
python3 - "$results/two" <<'END' || complain "two.csv: $(head -n 3 two.csv)"
import csv, json, math, sys
rows = list(csv.DictReader(open("two.csv")))
assert len(rows) == 8000 and list(rows[0]) == ["index", "label", "probability"]
labels = [line[0] for line in open("test.tsv")]
assert [row["label"] for row in rows] == labels and rows[7]["index"] == "7"
scores = sorted((float(row["probability"]), row["label"] == "1") for row in rows)
positives = sum(clicked for _, clicked in scores)
ranks = won = 0
i = 0
while i < len(scores):  # by ranks; equal ones have their mean
    j = i
    while j < len(scores) and scores[j][0] == scores[i][0]:
        j += 1
    ranks += sum(clicked for _, clicked in scores[i:j]) * (i + j + 1) / 2
    i = j
auc = (ranks - positives * (positives + 1) / 2) / (positives * (len(scores) - positives))
loss = -sum(math.log(p if clicked else 1 - p) for p, clicked in scores) / len(scores)
told = json.load(open(sys.argv[1]))["result"]
assert abs(auc - told["eval_auc"]) < 1e-4 and abs(loss - told["eval_loss"]) < 1e-4, (auc, loss, told)
few = [json.loads(line) for line in open("few.jsonl")]
assert len(few) == 500 and all(abs(a["probability"] - float(b["probability"])) < 2e-6 for a, b in zip(few, rows))
printed = open("printed.csv").read().splitlines()
assert len(printed) == 4 and printed[0] == "index,label,probability"
END
expect 2 'expected a name that ends with .csv or .jsonl' predict two --out two.txt
expect 2 'The log to predict: --data criteo:FILE' predict two x.jpg
expect 2 '--split does nothing for a model of clicks' evaluate two --split test
expect 2 '--num_workers does nothing for a model of clicks' evaluate two --num_workers 4
expect 2 '--sheet_size' predict two --sheet_size 4
expect 1 'names a log without a line' evaluate two --data criteo:empty.tsv
"$program" launch -n 2 "$program" evaluate two >"$results/out" 2>&1 && complain "two processes evaluated"
grep -q 'start it without argosy launch' "$results/out" || complain "two processes evaluate: $(tail -n 3 "$results/out")"
expect 1 'No such file or folder' predict nowhere --model deepfm --data criteo:test.tsv
expect 1 'was saved of other tables' predict two --model deepfm:dim=9,hidden=32x16
expect 2 'deepfm is no language model' generate --checkpoint two

# The other model, modes and rules; rows for ids that are seen twice; a log in gzip; a checkpoint to begin with.
gzip -k test.tsv
json late "${servers[@]}" --log_dir logs "$program" train --model wide_deep:dim=4,hidden=16,rule=adagrad,row_lr=0.1,entry=2 \
  --data criteo:clicks.tsv,limit=20000 --val criteo:test.tsv.gz,limit=2000 --mode half_async --staleness 4 --batch_size 100 \
  --epochs 1 --optimizer adagrad --verbose 0 --run_dir late
holds 'j["steps"] == 100 and j["result"]["eval_auc"] > 0.55' late
json free "${servers[@]}" --log_dir logs "$program" "${sync[@]}" --mode async --run_dir free --num_iters 10 --pretrained two
grep -q '"own_lines_per_second"' free/metrics.jsonl || complain "free/metrics.jsonl: $(tail -n 2 free/metrics.jsonl)"
holds 'j["steps"] == 10 and j["result"]["loss"] < 0.67' free # untrained: 0.69
text=$("$program" train --model deepfm:dim=2,hidden=4 --data criteo:test.tsv --epochs 1 --batch_size 500 --mode async --run_dir none 2>&1) ||
  complain "alone: $text"
[[ $text == *"--mode async is about workers that do not wait"*"one process with the rows in it"*"finished after 16 updates"* ]] || complain "alone it says: $text"

# Alone, a signal saves; the same command goes on to the bits of a run without a stop.
slow=(train --model deepfm:dim=8,hidden=32x16 --data criteo:clicks.tsv,limit=20000 --batch_size 200 --verbose 0 --epochs 6 --run_dir signalled --save_freq 5 --resume auto)
"$program" "${slow[@]}" >"$results/out" 2>&1 &
pid=$!
for ((i = 0; i < 400; ++i)); do
  compgen -G 'signalled/checkpoints/step-*' >/dev/null && break
  sleep 0.05
done
kill -TERM "$pid"
code=0
wait "$pid" || code=$?
[[ $code == 75 ]] || complain "after SIGTERM: expected exit code 75, got $code: $(tail -n 3 "$results/out")"
json went_on "${slow[@]}"
json whole "${slow[@]:0:9}" --epochs 6 --run_dir whole
for run in signalled whole; do
  "$program" checkpoint hash $run/checkpoints/step-000000600 2>&1 | cut -d ' ' -f 1 >"$results/$run"
done
[[ $(wc -c <"$results/whole") == 65 ]] && cmp -s "$results/signalled" "$results/whole" ||
  complain "a run that was stopped came to other weights: $(cat "$results/signalled" "$results/whole")"
exit "$failed"
