#!/usr/bin/env bash
# check_train.sh ARGOSY DATA: argosy train, evaluate, predict and generate as a user types them, alone and under
# launch. DATA: small data sets; Fashion-MNIST is Debian's. What the parts do in detail is tested beside
# their sources.
source "$(dirname "$0")/../check.sh" argosy "$1"
fashion=/usr/share/datasets/fashion-mnist
if [[ ! -e $fashion ]]; then
  echo "skipped: no $fashion (package dataset-fashion-mnist)"
  exit 77
fi
source "$(dirname "$0")/check_results.sh"

data=fashion_mnist:$fashion,limit=512
small=(--model lenet --data "$data" --verbose 0 --num_workers 1)

for part in train evaluate predict generate; do
  expect 0 "Example" "$part" --help
done
for list in models data optimizers schedules augment traffic all; do
  expect 0 "=" train --list "$list" # a default of an option
done
expect 0 "resnet18 " train --list models
expect 0 "betas=0.9/0.999" train --list optimizers

# What is wrong, by its name; nothing is left behind.
expect 2 '--model is required' train
expect 2 '--data is required' train --model lenet
expect 2 'unknown model "resnet19": nearest is resnet18. See: argosy train --list models' train --model resnet19 --data "$data"
expect 2 'unknown data set "fashon_mnist": nearest is fashion_mnist' train --model lenet --data fashon_mnist:x
export ARGOSY_DATA_HOME=$results/home
mkdir "$ARGOSY_DATA_HOME"
expect 1 'cifar10 is not there. To bring it: argosy data fetch cifar10' train --model lenet --data cifar10
expect 2 'unknown optimizer "adm": nearest is adam' train "${small[@]}" --optimizer adm
expect 2 'adam has no option "beta": nearest is betas' train "${small[@]}" --optimizer adam:beta=1
expect 2 'adam:betas: expected 2 numbers' train "${small[@]}" --optimizer adam:betas=1
expect 2 'unknown schedule "cosin": nearest is cosine' train "${small[@]}" --schedule cosin
expect 2 'unknown transform "flp": nearest is flip' train "${small[@]}" --augment crop,flp
expect 2 '--epochs: expected a whole number, got "x"' train "${small[@]}" --epochs x
expect 2 '--epochs: expected 1 or more, got "0"' train "${small[@]}" --epochs 0
expect 2 'Did you mean --epochs?' train "${small[@]}" --epoch 3
expect 2 'one word too many: more' train "${small[@]}" more
expect 2 'lenet takes pictures of 28 x 28' train "${small[@]}" --image_size 32
expect 2 'face_net gives points' train --model face_net --data "$data"
expect 2 'onecycle takes no warm-up' train "${small[@]}" --schedule onecycle --warmup 3
expect 2 'No such file' train --config none.json
expect 2 'expected one of models, data' train --list foo
expect 1 'is not there' train --model lenet --data cifar10:/none
expect 1 'No such file' evaluate none
expect 2 'WEIGHTS is required' evaluate
echo '{"epoch": 1}' >wrong.json
expect 2 'nearest is --epochs' train --config wrong.json
echo '[1' >wrong.json
expect 2 'expected a JSON object' train --config wrong.json
[[ $(ls) == wrong.json ]] || complain "errors left files behind: $(ls)"

# A dry run says what would be, and touches nothing.
json plan train "${small[@]}" --dry_run --epochs 3 --batch_size 100
holds 'j["training"]["updates"] == 18 and j["model"]["parameters"] == 61610 and j["data"]["splits"] == {"train": 512, "test": 512}' plan
expect 0 'training_chain     Compose(RandomCrop(28, padding=3), RandomHorizontalFlip(), ToTensor(), Normalize(0.286, 0.353))' \
  train "${small[@]}" --dry_run --augment crop,flip
[[ $(ls) == wrong.json ]] || complain "a dry run left files behind: $(ls)"

# Alone, and the same by two processes with half of each batch.
options=(--epochs 2 --optimizer momentum --lr 0.05 --schedule cosine --warmup 3 --augment crop,flip --label_smoothing 0.1)
json one train "${small[@]}" "${options[@]}" --batch_size 32 --run_dir first
json two launch --nproc_per_node 2 "$program" train "${small[@]}" "${options[@]}" --batch_size 16 --run_dir second
plans=$("$program" launch --nproc_per_node 2 "$program" train "${small[@]}" --dry_run --json 2>&1 | grep -c '"updates"')
[[ $plans == 1 ]] || complain "a dry run of two processes said it $plans times"
holds 'j["steps"] == 32 and j["ended"] == "finished" and j["result"]["eval_acc"] > 0.2' one
holds 'j[1]["processes"] == 2 and all(abs(a[n] - b[n]) < 2e-3 for a, b in zip(j[0]["epochs"], j[1]["epochs"]) for n in a)' one two
holds 'j["weights"] == "first/model.pt"' one

# From a stored configuration: the same bits. The command line wins over it.
json again train --config first/recipe.json --run_dir again
holds 'j[0]["weights_hash"] == j[1]["weights_hash"] and j[0]["epochs"] == j[1]["epochs"]' one again
[[ $("$program" checkpoint hash again/model.pt | cut -d ' ' -f 1) == $("$program" checkpoint hash first/model.pt | cut -d ' ' -f 1) ]] ||
  complain "argosy checkpoint hash tells the weights apart"
json both launch --nproc_per_node 2 "$program" train --config first --run_dir both --epochs 1
holds 'j["processes"] == 2 and j["steps"] == 8' both
json other train --config first/recipe.json --run_dir other --seed 2 --epochs 1
holds 'j[0]["weights_hash"] != j[1]["weights_hash"] and j[1]["steps"] == 16' one other

# Cut off in the middle and resumed: the same bits as without.
json cut train --config first/recipe.json --run_dir cut --num_iters 9 --save_freq 4
cp -r cut changed
expect 0 'resumes with changed options: --lr 0.5 (was 0.05). Weights, learning rate' \
  train --config first/recipe.json --run_dir changed --lr 0.5 --resume auto
newest=$("$program" checkpoint hash "$(ls -d changed/checkpoints/step-* | tail -n 1)" | cut -d ' ' -f 1)
expect 0 "$newest  changed/model.pt" checkpoint hash changed
holds 'j["options"]["lr"] == 0.05' ../"$(basename "$scratch")"/changed/recipe.json

# A run's folder stands for what the run would end with: with --ema that is the average, also where
# a kill has left only checkpoints. A checkpoint is read by its parts.
json averaged train "${small[@]}" --epochs 1 --ema 0.9 --save_freq 16 --run_dir averaged
averaged=$("$program" checkpoint hash averaged/model.pt | cut -d ' ' -f 1)
expect 0 "$averaged  averaged/model.pt" checkpoint hash averaged
expect 2 'averaged/model.pt has no parts' checkpoint convert averaged weights.safetensors --part model
json at_end evaluate averaged
mv averaged/model.pt averaged/recipe.json .
expect 0 "$(ls -d averaged/checkpoints/step-* | tail -n 1)" checkpoint hash averaged
mv recipe.json averaged/
expect 0 "$averaged  averaged" checkpoint hash averaged
json at_kill evaluate averaged
holds 'j[0]["result"] == j[1]["result"]' at_end at_kill
expect 0 "hash $averaged" checkpoint convert averaged averaged.safetensors
weights=$("$program" checkpoint hash "$(ls -d averaged/checkpoints/step-* | tail -n 1)" | cut -d ' ' -f 1)
[[ ${#averaged} -eq 64 && $weights != "$averaged" ]] || complain "a checkpoint's weights are its average: $weights"
expect 0 "hash $weights" checkpoint convert averaged weights.safetensors --part model
expect 0 "hash $weights" checkpoint convert averaged/checkpoints/step-000000016 named.safetensors
expect 0 "Taken: the weights. The average: --part ema" checkpoint convert averaged/checkpoints/step-000000016 named.safetensors
cp weights.safetensors averaged/checkpoints/ # nothing of the run counts for a file
echo '{"options": {"flour": 3}}' >averaged/recipe.json
expect 2 'averaged/recipe.json: unknown option --flour' checkpoint convert averaged more.safetensors
echo '{"flour": 3}' >averaged/recipe.json
expect 0 "hash $weights" checkpoint convert averaged/checkpoints/weights.safetensors copy.safetensors
json resumed train --config first/recipe.json --run_dir cut --resume must
holds 'j[0]["weights_hash"] == j[1]["weights_hash"] and j[1]["steps"] == 32' one resumed
output=$("$program" train --config first/recipe.json --run_dir cut --resume must --verbose 2 2>&1)
[[ $output == *"nothing is left to do after step 32"*"finished after 32 updates, "*" s"$'\n'* && $output != *"loss printed"* ]] ||
  complain "a run that was finished, started again: $output"
expect 1 "no whole checkpoint" train --config first/recipe.json --run_dir nothing --resume must

# Evaluation and prediction agree with it, alone and by two.
json evaluated evaluate first
holds 'abs(j[0]["result"]["eval_loss"] - j[1]["result"]["loss"]) < 1e-6 and j[0]["result"]["eval_acc"] == j[1]["result"]["acc"]' one evaluated
json evaluated2 launch --nproc_per_node 2 "$program" evaluate first
holds 'j[0]["result"]["acc"] == j[1]["result"]["acc"] and abs(j[0]["result"]["loss"] - j[1]["result"]["loss"]) < 1e-6' evaluated evaluated2
json checkpoint evaluate "first/checkpoints"
holds 'j[0]["result"] == j[1]["result"]' evaluated checkpoint
expect 2 'there is no split "valid", only train, test' evaluate first --split valid
json predicted predict first --out first.csv --sheet first.html --topk 2
holds 'j[0]["right"] == round(512 * j[1]["result"]["acc"])' predicted evaluated
[[ $(wc -l <first.csv) -eq 513 && $(head -n 1 first.csv) == index,name,label,predicted,probability,predicted_2,probability_2 ]] ||
  complain "first.csv: got $(head -n 2 first.csv)"
[[ $(grep -c '<figure' first.html) == 48 ]] || complain "first.html does not show 48 pictures"
json predicted2 launch --nproc_per_node 2 "$program" predict first --out two.jsonl
python3 -c "
import csv, json
a = [row['predicted'] for row in csv.DictReader(open('first.csv'))]
b = [json.loads(line)['predicted'][0]['class'] for line in open('two.jsonl')]
assert a == b and len(a) == 512
" || complain "predictions of two processes differ from those of one"
expect 0 "index,name,label,predicted,probability" predict first --out -
expect 2 "ends with .csv or .jsonl" predict first --out first.txt
expect 2 "ends with .html" predict first --sheet first.gif

# What fetch brought is found by its name alone.
ln -s $fashion "$ARGOSY_DATA_HOME/fashion_mnist"
expect 0 "there already" data fetch fashion_mnist
json named train --model lenet --data fashion_mnist,limit=64 --epochs 1 --batch_size 16 --run_dir named --verbose 0
holds 'j["steps"] == 4' named
holds 'j["options"]["data"] == "fashion_mnist,limit=64"' ../"$(basename "$scratch")"/named/recipe.json
json evaluated evaluate named
holds 'j["samples"] == 64' evaluated
expect 0 "predictions in named.csv" predict named --out named.csv
expect 0 "70,000" data info fashion_mnist

# Colors, another size, weights to begin with; files without labels; points.
json cifar train --model resnet18 --data "cifar10:$2/cifar10/cifar-10-python.tar.gz,limit=16" --image_size 40 \
  --optimizer adamw:decay=weights --weight_decay 0.05 --clip_norm 1 --accumulate 2 --batch_size 4 --epochs 1 --run_dir cifar --verbose 0
holds 'j["steps"] == 2' cifar
expect 0 "loaded 119 of 122 entries" train --model resnet18 --data "keypoints:$2/keypoints/training.csv.gz" --pretrained cifar/model.pt \
  --image_size 40 --num_iters 1 --epochs 1 --batch_size 4 --run_dir none --verbose 1
expect 0 "411.jpg" predict cifar "$2/images/411.jpg" "$2/images/420.jpg"
mkdir holiday && cp "$2/images/411.jpg" holiday/
expect 0 "411.jpg" predict cifar holiday/ --topk 3
expect 1 "no such file or folder" predict cifar none.jpg
# Paddle's format and back, with the model that knows which weights lie transposed.
for pair in "first lenet" "cifar resnet18"; do
  read -r run model <<<"$pair"
  expect 0 "hash " checkpoint convert $run/model.pt $run.pdparams --model $model
  expect 0 "hash " checkpoint convert $run.pdparams $run.back.pt --model $model
done
word=$("$program" checkpoint hash first/model.pt 2>/dev/null | cut -d ' ' -f 1)
[[ ${#word} -eq 64 ]] || complain "hash of first/model.pt: $word"
expect 0 "$word" checkpoint hash first.back.pt
expect 1 "these are not the weights of --model" checkpoint convert first/model.pt x.pdparams --model mnist_cnn
json faces train --model face_net --data "keypoints:$2/keypoints/training.csv.gz" --image_size 40 --epochs 1 --batch_size 4 --augment flip --run_dir faces --verbose 0
holds 'j["result"]["eval_mae"] > 0' faces
json drawn predict faces --out faces.csv --sheet faces.html
holds '"right" not in j and j["samples"] > 0' drawn
grep -q '<circle class="true"' faces.html || complain "faces.html shows no true points"
[[ $(head -n 1 faces.csv) == index,name,left_eye_center_x,left_eye_center_y,* ]] || complain "faces.csv: got $(head -n 1 faces.csv)"
# Kaggle's file: what the contest asks for, in its order. Here it asks for the faces of the training, of which
# the ordinary predictions are known.
mkdir contest
python3 -c "
import csv, gzip
rows = list(csv.DictReader(gzip.open('$2/keypoints/training.csv.gz', 'rt')))
rows = [r for r in rows if all(r.values())]
with open('contest/training.csv', 'w') as training, open('contest/test.csv', 'w') as test, open('contest/IdLookupTable.csv', 'w') as asked:
    out = csv.DictWriter(training, rows[0].keys())
    out.writeheader()
    out.writerows(rows)
    test.write('ImageId,Image\n' + ''.join('%d,%s\n' % (100 + i, r['Image']) for i, r in enumerate(rows)))
    asked.write('RowId,ImageId,FeatureName,Location\n1,101,nose_tip_y,\n2,100,nose_tip_x,\n3,100,left_eye_center_y,\n')
"
expect 0 "predictions in all.csv" predict faces --data keypoints:contest/training.csv,holdout=0 --split train --out all.csv
expect 0 "predictions in kaggle.csv" predict faces --submission contest --out kaggle.csv
python3 -c "
import csv
known = list(csv.DictReader(open('all.csv')))
wanted = [known[1]['nose_tip_y'], known[0]['nose_tip_x'], known[0]['left_eye_center_y']]
rows = [line.split(',') for line in open('kaggle.csv').read().splitlines()]
assert rows[0] == ['RowId', 'Location'] and [r[0] for r in rows[1:]] == ['1', '2', '3'], rows
assert all(abs(float(r[1]) - float(w)) < 1e-2 for r, w in zip(rows[1:], wanted)), (rows, wanted)
" || complain "kaggle.csv is not what was asked for"
expect 2 "--submission is for points" predict cifar --submission "$2/keypoints" --out cifar.csv
expect 2 "--submission: expected --out FILE.csv" predict faces --submission "$2/keypoints"

# Language models: a text, its tokens, what is learned and said of it; the same bits on every layout.
for ((i = 0; i < 300; ++i)); do
  echo "The ship with $((i * 7 % 31)) oars left the harbour, and $((i * 5 % 23)) of them came back before the evening."
done >ships.txt
text=(--model gpt:layers=1,width=64 --data text:ships.txt --sequence_length 32 --verbose 0 --num_workers 1
  --batch_size 2 --virtual_ranks 4 --epochs 2)
json plan train "${text[@]}" --dry_run
holds 'j["model"]["parameters"] > 60000 and j["data"]["vocab_size"] == 257 and j["options"]["model"].endswith("context=32")' plan
json alone launch -n 1 "$program" train "${text[@]}" --run_dir alone
json sharded launch -n 4 "$program" train "${text[@]}" --run_dir sharded --mesh dp=2,sharding=2 --recompute --sample "The "
holds 'j[0]["weights_hash"] == j[1]["weights_hash"] and j[0]["epochs"] == j[1]["epochs"] and j[1]["processes"] == 4' alone sharded
holds 'j["result"]["eval_perplexity"] < 40' alone
grep -q 'sample after epoch 2: The ' "$results/out" || complain "no sample: $(cat "$results/out")"
grep -q '"tokens_per_second"' alone/metrics.jsonl || complain "metrics.jsonl has no tokens_per_second"
expect 0 "tokens/s" train "${text[@]:0:6}" --run_dir none --num_iters 20 --epochs 1
json evaluated evaluate sharded
holds 'abs(j[0]["result"]["eval_perplexity"] - j[1]["result"]["perplexity"]) < 1e-4' alone evaluated
said=$("$program" generate --checkpoint sharded --prompt "The ship" --seed 3 2>&1) || complain "generate: $said"
[[ $said == "The ship"?* && $said == "$("$program" generate --checkpoint alone/checkpoints --prompt "The ship" --seed 3)" ]] ||
  complain "generate says different things of the same weights: $said"
[[ $said != "$("$program" generate --checkpoint alone --prompt "The ship" --seed 4)" ]] || complain "generate --seed does nothing"
[[ $("$program" generate --checkpoint alone --prompt "The ship" --max_new_tokens 0) == "The ship" ]] || complain "no new token is one"
expect 2 '--checkpoint is required' generate
expect 1 'No such file' generate --checkpoint nowhere
expect 2 'lenet is no language model' generate --checkpoint first --prompt a
expect 2 '--prompt has 40 tokens, 0 new ones are wanted' generate --checkpoint alone --prompt "$(printf 'a%.0s' {1..40})"
expect 2 'Give a shorter --prompt, or fewer --max_new_tokens' generate --checkpoint alone --prompt a --max_new_tokens 32
expect 2 'top_p must be in (0, 1]' generate --checkpoint alone --top_p 0
expect 2 '--sharding_stage 3 is about the axis sharding' train "${text[@]}" --sharding_stage 3
expect 2 'the text has' train --model gpt:layers=1,width=64 --data text:ships.txt --sequence_length 100000
expect 0 'each epoch is one update' train "${text[@]:0:6}" --run_dir none --batch_size 2000 --epochs 1
expect 1 'Give --model with the options with which it was trained' generate --checkpoint alone --model gpt:layers=2,width=64,context=32
expect 0 "hash " checkpoint convert alone alone.safetensors
expect 0 "$("$program" checkpoint hash alone/model.pt | cut -d ' ' -f 1)" checkpoint hash alone
rm alone/model.pt && printf x >>"$(ls -d alone/checkpoints/step-* | tail -n 1)/model.safetensors"
expect 0 'passed over' generate --checkpoint alone --prompt a --max_new_tokens 1
expect 2 'argosy generate --checkpoint' predict alone
expect 2 'there is no axis "pp" yet' train "${text[@]}" --mesh pp=2
expect 2 'dp=2, sharding=2 makes 4 ranks, and there is 1. Start 4 (argosy launch -n 4)' train "${text[@]}" --mesh dp=2,sharding=2
expect 2 '--tokenizer is about language models' train "${small[@]}" --tokenizer gpt2
expect 2 'learns from text: --data text:FILE' train --model gpt --data "$data"
expect 2 'from which language models learn' train --model lenet --data text:ships.txt
if error=$("$program" generate --checkpoint alone 2>&1 >/dev/full) || [[ $error != *"No space left"* ]]; then
  complain "argosy generate >/dev/full: expected a failure that says why, got: $error"
fi
if error=$("$program" train --list all 2>&1 >/dev/full) || [[ $error != *"No space left"* ]]; then
  complain "argosy train --list all >/dev/full: expected a failure that says why, got: $error"
fi
if error=$("$program" evaluate cifar 2>&1 >/dev/full) || [[ $error != *"written"* && $error != *"No space left"* ]]; then
  complain "argosy evaluate >/dev/full: expected a failure that says why, got: $error"
fi

# Less traffic: each way says what it sends and trains two processes, and a resume has the bits of a training that was
# never stopped.
for each in "localsgd:k_steps=3 averaged up to update 1, then weights every 3 updates" \
  "adaptive_localsgd:init_k_steps=2 then weights every 2 updates at first" \
  "dgc:sparsity=0.9,rampup_begin_step=2 1 of 10 gradients send their largest elements from update 3 on, a share of 0.1" \
  "power_sgd:start=2,rank=2 from update 3 on, 4 of 10 gradients are sent as matrices of rank 2" \
  "diloco:sync_every=4,fragments=2,delay=1,alpha=0.5,bits=8 as numbers of 8 bits, in 2 fragment(s) with a delay of 1"; do
  traffic=${each%% *}
  way=${traffic%%:*}
  saving=(launch -n 2 "$program" train "${small[@]}" --epochs 2 --optimizer momentum --lr 0.05 --traffic "$traffic")
  ARGOSY_LOG=info json "$way" "${saving[@]}" --run_dir "$way"
  [[ $(cat "$results/err" "$results/out") == *"${each#* }"* ]] || complain "$way does not say: ${each#* }"
  json "$way-stopped" "${saving[@]}" --run_dir "$way-parts" --num_iters 5
  json "$way-parts" "${saving[@]}" --run_dir "$way-parts" --resume must
  holds 'j[0]["weights_hash"] == j[1]["weights_hash"] and j[0]["steps"] == 16' "$way" "$way-parts"
done
# Two virtual ranks: one process has the bits of two, and goes on from their checkpoint.
for traffic in dgc:sparsity=0.9 localsgd:k_steps=3; do
  way=${traffic%%:*}
  two=(train "${small[@]}" --epochs 2 --optimizer momentum --lr 0.05 --traffic "$traffic" --virtual_ranks 2)
  json "$way-two" launch -n 2 "$program" "${two[@]}" --run_dir none
  json "$way-stopped" launch -n 2 "$program" "${two[@]}" --run_dir "$way-virtual" --num_iters 5
  json "$way-one" launch -n 1 "$program" "${two[@]}" --run_dir "$way-virtual" --resume must
  holds 'j[0]["weights_hash"] == j[1]["weights_hash"] and j[0]["steps"] == 16' "$way-two" "$way-one"
done
expect 2 'unknown way to save traffic "dcg": nearest is dgc' train "${small[@]}" --traffic dcg
expect 2 'dgc has no option "k"' train "${small[@]}" --traffic dgc:k=1
expect 2 'diloco excludes sharding' train "${small[@]}" --traffic diloco --mesh sharding
expect 2 'is not counted. Leave it out' estimate --model lenet --traffic dgc
"$program" launch -n 2 "$program" train "${small[@]}" --traffic dgc --run_dir none >"$results/out" 2>&1 &&
  complain "dgc trained with Adam"
grep -q 'dgc has the momentum of optim::Momentum.*got Adam' "$results/out" || complain "dgc and Adam: $(tail -n 3 "$results/out")"
exit "$failed"
