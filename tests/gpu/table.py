"""The medians of run.sh's figures: python3 table.py steps.jsonl"""

import collections
import json
import statistics
import sys

times = collections.defaultdict(list)
for line in open(sys.argv[1], encoding="utf-8"):
    run = json.loads(line)
    times[run["bench"], run["variant"]].append(statistics.median(run["samples_ms"]))
print("ms a step, median of the runs' medians [least, greatest]; beside PyTorch as it comes")
for (model, variant), runs in times.items():
    ratio = statistics.median(ours / peer for ours, peer in zip(runs, times[model, "pytorch"]))
    print(f"{model:10} {variant:20} {statistics.median(runs):8.3f} [{min(runs):.3f} {max(runs):.3f}] {ratio:6.2f}")
