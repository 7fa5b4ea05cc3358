"""The figures of run.sh and the goals beside them: python3 table.py figures.jsonl...

Exit code 1: losses of variants differ at the first step, or one does not fall, so times mean nothing. A goal that was
missed is no error.
"""

import collections
import json
import statistics
import sys

OURS = "argosy"
# Ours over the peer's; PyTorch's guide to performance makes "tuned" of "eager".
STEP_GOALS = {
    "pytorch": ("eager", 0.95),
    "pytorch tuned": ("eager, tuned", 0.95),
    "pytorch compiled": ("compiled", 1.05),
}
COPY = "copy on the device"
SUM_GOAL = 0.8  # of the copy's rate
LEAST_STEPS = 10  # of a run whose losses are compared, and must fall; a dry run's are of too few samples
FIRST_LOSS = 0.02  # most by which variants may differ: half of them compute in 16 bits


def spread(values):
    return f"{statistics.median(values):9.2f} [{min(values):.2f} {max(values):.2f}]"


def ratios(mine, theirs):
    """Of two figures, each by its round: in rounds that both have."""
    return [mine[r] / theirs[r] for r in mine.keys() & theirs.keys()]


class Figures:
    def __init__(self, lines):
        self.card = {}
        self.results = {}
        self.rates = collections.defaultdict(dict)  # GB/s of a kind of work, by round
        self.loaders = {}  # pictures a second of a variant, one for each epoch
        self.steps = collections.defaultdict(dict)  # ms a step of (part, precision, variant), by round
        self.batch = {}  # of a part
        self.wrong = []
        first_losses = collections.defaultdict(dict)
        for line in map(json.loads, lines):
            if "result" in line:
                self.results[line["part"]] = line["result"]
            elif line["part"] == "card":
                self.card = line
            elif line["part"] == "copies":
                self.rates[line["what"]][line["round"]] = line["gb_per_s"]
            elif line["part"] == "input":
                self.loaders[line["variant"]] = [1e3 * line["images"] / ms for ms in line["samples_ms"]]
            else:
                key = (line["part"], line["precision"], line["variant"])
                self.steps[key][line["round"]] = statistics.median(line["samples_ms"])
                self.batch[line["part"]] = line["batch"]
                if line["part"] != "fed" and len(line["samples_ms"]) >= LEAST_STEPS:
                    first_losses[key[:2]][line["variant"]] = line["loss_first"]
                    if not line["loss_last"] < line["loss_first"]:
                        self.wrong.append(f"{key}: the loss went from {line['loss_first']} to {line['loss_last']}")
        for what, losses in first_losses.items():
            if max(losses.values()) - min(losses.values()) > FIRST_LOSS * max(losses.values()):
                self.wrong.append(f"{what}: first losses differ: {losses}")

    def samples_per_s(self, key):
        """Pictures, or sequences."""
        return 1e3 * self.batch[key[0]] / statistics.median(self.steps[key].values())


class Goals:
    """A row for each: what, what is wanted, and what came out."""

    def __init__(self):
        self.rows = []

    def add(self, what, value, bound, at_most):
        met = value <= bound if at_most else value >= bound
        wanted = f"{'≤' if at_most else '≥'} {bound:.2f}"
        self.rows.append((what, wanted, f"{value:.2f}", "met" if met else "missed"))


def print_copies(figures, goals):
    if COPY not in figures.rates:
        return
    print("GB/s, median of rounds [least, greatest]; a sum counts each term and the result once; share of the copy")
    shares = {}
    for what, rounds in figures.rates.items():
        share = ratios(rounds, figures.rates[COPY])
        print(f"  {what:22} {spread(rounds.values())}", f"{spread(share)}" if what.startswith("sum") else "")
        if what.startswith("sum"):
            shares[what] = statistics.median(share)
    for what, share in shares.items():
        goals.add(f"exact: {what} beside a copy", share, SUM_GOAL, at_most=False)
    if "memory_gb_per_s" in figures.card:
        share = statistics.median(figures.rates[COPY].values()) / figures.card["memory_gb_per_s"]
        print(f"  the copy is {share:.2f} of what the memory's clock and width promise")


def print_input(figures, goals):
    if figures.loaders:
        print("pictures/s from JPEGs to batches, median of epochs [least, greatest]")
    for variant, rates in figures.loaders.items():
        print(f"  {variant:22} {spread(rates)}")
    step = ("steps", "bf16", OURS)
    if step in figures.steps and OURS in figures.loaders:
        loader = statistics.median(figures.loaders[OURS])
        goals.add("input: pictures/s beside the step's", loader / figures.samples_per_s(step), 1, at_most=False)


def print_steps(figures, goals):
    if figures.steps:
        print("ms a step, median of rounds [least, greatest]; pictures/s, or sequences/s")
    for (part, precision, variant), rounds in figures.steps.items():
        what = {"fed": f"{precision}, pictures read meanwhile", "gpt": f"gpt, {precision}"}.get(part, precision)
        rate = figures.samples_per_s((part, precision, variant))
        print(f"  {what:28} {variant:22} {spread(rounds.values())} {rate:9.0f}")
        if part == "fed" or variant != OURS:
            continue
        for peer, (name, bound) in STEP_GOALS.items():
            theirs = figures.steps.get((part, precision, peer))
            if theirs and (both := ratios(rounds, theirs)):
                goals.add(f"step, {what}: {variant} beside {name}", statistics.median(both), bound, at_most=True)


def report(lines):
    """Prints all. Returns what is wrong with the figures."""
    figures = Figures(lines)
    goals = Goals()
    if figures.card:
        print(f"{figures.card['name']}, PyTorch {figures.card['torch']}, NCCL {figures.card['nccl']}")
    print_copies(figures, goals)
    print_steps(figures, goals)
    print_input(figures, goals)
    for row in goals.rows:
        print("goal: {:58} {:>7} {:>6}  {}".format(*row))
    for what in figures.wrong:
        print(f"void: {what}")
    print("parts:", "; ".join(f"{part} {result}" for part, result in figures.results.items()))
    return figures.wrong


def main():
    lines = []
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as file:
            lines += file
    return 1 if report(lines) else 0


if __name__ == "__main__":
    sys.exit(main())
