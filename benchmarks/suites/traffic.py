"""Strategies that save traffic: time of a step over slow links (needs root), and steps to an accuracy or a loss."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from suites.base import HERE, Case, Measure, ours, samples, samples_ms

RATES = ("10mbit", "100mbit", "1gbit")
SEEDS = range(1, 6)

# For a step's time everything is on from the first step; for steps to the target it begins as one would begin it.
POWER_SGD = {"matrix_approximation_rank": 2}
# The paper's outer momentum of 0.9 is for models that train longer.
DILOCO = {"sync_every": 100, "outer_momentum": 0.5}
STREAMING = {**DILOCO, "fragments": 4, "fragment_sync_delay": 20, "fragment_update_alpha": 0.5, "bits": 4}
AT_ONCE = {
    "ddp": {},
    "fp16": {"fp16_allreduce": True},
    "power_sgd": {"power_sgd": True, "power_sgd_configs": {**POWER_SGD, "start_power_sgd_iter": 0}},
    "dgc": {"dgc": True},
    "localsgd": {"localsgd": True, "localsgd_configs": {"k_steps": 8}},
    "diloco": {"diloco": True, "diloco_configs": DILOCO},
    "streaming": {"diloco": True, "diloco_configs": STREAMING},
    # Of a small model whose steps are short: the link has to keep up with what all fragments bring.
    "streaming_400": {"diloco": True, "diloco_configs": {**STREAMING, "sync_every": 400, "fragment_sync_delay": 80}},
    "no_network": {"diloco": True, "diloco_configs": {"sync_every": 1000000}},
}
RAMP = {"rampup_begin_step": 40, "rampup_step": 100, "sparsity": [0.75, 0.9375, 0.984375, 0.996, 0.999]}
BEGUN = {
    **{name: way for name, way in AT_ONCE.items() if name not in ("streaming_400", "no_network")},
    "power_sgd": {"power_sgd": True, "power_sgd_configs": {**POWER_SGD, "start_power_sgd_iter": 40}},
    "dgc": {"dgc": True, "dgc_configs": RAMP},
    "adaptive_localsgd": {"adaptive_localsgd": True, "adaptive_localsgd_configs": {"init_k_steps": 8}},
}

# The GPT has an optimizer that DGC and LocalSGD do not go with: those are beside data parallelism with momentum.
WITH_MOMENTUM = ("ddp", "dgc", "localsgd", "adaptive_localsgd")


@dataclass
class Task:
    """What is trained, by options of bench_slow_network, and what it must reach."""

    name: str
    target: float
    most: int  # steps
    options: list
    begun: dict  # strategy: (way, options)
    prepare: Callable = None  # False: its data is not there


def _pictures(_args):
    return Task("", 0.84, 2000, [], {name: (way, []) for name, way in BEGUN.items()})


def _book(args):
    adamw = ["--optimizer", "adamw", "--lr", 2e-3]
    momentum = ["--optimizer", "momentum", "--lr", 0.1]
    begun = {name: (way, adamw) for name, way in BEGUN.items() if name == "ddp" or name not in WITH_MOMENTUM}
    begun |= {f"{name}_momentum": (BEGUN[name], momentum) for name in WITH_MOMENTUM}
    options = ["--book", args.scratch / "bible.txt", "--batch", 8]
    return Task("gpt_", 5.2, 2000, options, begun, lambda: _write_book(args))


def _write_book(args):
    """The King James Bible of Debian's package; False: it is not installed."""
    book = args.scratch / "bible.txt"
    if shutil.which("bible") is None:
        print("  left out, for there is no bible (package bible-kjv)", file=sys.stderr)
        return False
    if not book.exists():
        with book.open("w") as out:
            subprocess.run(["bible", "gen1:1-rev22:21"], stdin=subprocess.DEVNULL, stdout=out, check=True)
    return True


def _program(args, way, *options):
    return [args.bin / "bench_slow_network", "--strategy", json.dumps(way), *options]


def _over_hosts(args, rate, program):
    shape = ["--hosts", 2, "--ranks", 1, "--rate", rate]
    return [sys.executable, HERE / "hosts.py", *shape, "--argosy", args.bin / "argosy", "--", *program]


def _sent_kb(run):
    return run["objects"][0]["sent_kb"]


def _check(run, _others):
    return None if run["objects"][0]["ranks_agree"] == "yes" else "what ranks have together differs"


def _step_of(args, task, rate, way):
    """50 steps; where ranks are apart for long, several rounds."""
    every = min(way.get("diloco_configs", {}).get("sync_every", 0), 400)
    count, warmup = (2 * every, every) if every else (50, 10)
    return _over_hosts(args, rate, _program(args, way, *task.options, "--steps", count, "--warmup", warmup))


def _steps_at(args, task, rate):
    ways = {name: way for name, way in AT_ONCE.items() if name != "streaming_400"}
    variants = {f"argosy_{name}": _step_of(args, task, rate, way) for name, way in ways.items()}
    name = f"{task.name}step_{rate}"
    measures = [Measure(name, "ms", samples_ms), Measure(f"{name}_sent", "kB", _sent_kb)]
    return Case("traffic", name, variants, measures, _check, prepare=task.prepare)


def _streaming(args, task, goal):
    """The goal: at 10 Mbit/s nine tenths of the speed without a network."""
    ways = {"argosy_streaming": AT_ONCE[goal], "argosy_no_network": AT_ONCE["no_network"]}
    variants = {name: _step_of(args, task, "10mbit", way) for name, way in ways.items()}
    name = f"{task.name}streaming_10mbit"
    pairs = [("argosy_streaming", "argosy_no_network", 1 / 0.9)]
    return Case("traffic", name, variants, [Measure(name, "ms", samples_ms, pairs)], _check, prepare=task.prepare, least_reps=9)


def _steps_to_target(args, task, seed):
    options = [*task.options, "--target", task.target, "--most", task.most, "--seed", seed]
    variants = {}
    for name, (way, optimizer) in task.begun.items():
        program, *rest = _program(args, way, *options, *optimizer)
        variants[f"argosy_{name}"] = ours(args, program.name, *rest, ranks=2)
    name = f"{task.name}steps_to_{task.target}_seed_{seed}"
    return Case("traffic", name, variants, [Measure(name, "steps", samples)], _check, prepare=task.prepare)


def cases(args):
    if os.geteuid() != 0:
        print("traffic: steps over links are left out, network namespaces need root", file=sys.stderr)
    for task in (_pictures(args), _book(args)):
        if os.geteuid() == 0:
            yield _streaming(args, task, "streaming" if task.name else "streaming_400")
            for rate in RATES:
                yield _steps_at(args, task, rate)
        for seed in SEEDS:
            yield _steps_to_target(args, task, seed)
