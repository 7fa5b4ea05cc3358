"""The medians of run.sh's figures: python3 table.py steps.jsonl

Fails if a model's first loss differs by a hundredth between two variants, or a loss does not fall."""

import collections
import json
import statistics
import sys

times = collections.defaultdict(dict)  # of a model and a variant: the median of each round
losses = collections.defaultdict(dict)
for line in open(sys.argv[1], encoding="utf-8"):
    run = json.loads(line)
    times[run["bench"], run["variant"]][run["round"]] = statistics.median(run["samples_ms"])
    losses[run["bench"]].setdefault(run["variant"], (run["loss_first"], run["loss_last"]))


def beside(model, variant, peer):
    rounds = times[model, variant].keys() & times.get((model, peer), {}).keys()
    ratios = [times[model, variant][r] / times[model, peer][r] for r in rounds]
    return f"{statistics.median(ratios):6.2f} [{min(ratios):.2f} {max(ratios):.2f}]" if ratios else "     -"


print("ms a step, median of the rounds' medians [least, greatest]; beside PyTorch as it comes, and tuned, by rounds")
for (model, variant), of_rounds in list(times.items()):
    runs = of_rounds.values()
    print(
        f"{model:10} {variant:20} {statistics.median(runs):8.3f} [{min(runs):.3f} {max(runs):.3f}]",
        beside(model, variant, "pytorch"),
        beside(model, variant, "pytorch tuned"),
    )
wrong = False
for model, of_variants in losses.items():
    print(f"{model:10} loss", "; ".join(f"{v}: {first:.4f} to {last:.4f}" for v, (first, last) in of_variants.items()))
    firsts = [first for first, _ in of_variants.values()]
    wrong = wrong or max(firsts) - min(firsts) > 0.01 * max(firsts)
    wrong = wrong or any(last >= first for first, last in of_variants.values())
sys.exit("the losses differ, or do not fall" if wrong else 0)
