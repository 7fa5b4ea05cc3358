"""Strategies that save traffic: time of a step over slow links, and steps to an accuracy. The first needs root."""

import json
import os
import sys

from suites.base import HERE, Case, Measure, ours, samples, samples_ms

RATES = ("10mbit", "100mbit", "1gbit")
SEEDS = range(1, 6)
TARGET = 0.84
MOST = 2000  # steps

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


def _program(args, way, *options):
    return [args.bin / "bench_slow_network", "--strategy", json.dumps(way), *options]


def _over_hosts(args, rate, program):
    shape = ["--hosts", 2, "--ranks", 1, "--rate", rate]
    return [sys.executable, HERE / "hosts.py", *shape, "--argosy", args.bin / "argosy", "--", *program]


def _sent_kb(run):
    return run["objects"][0]["sent_kb"]


def _check(run, _others):
    return None if run["objects"][0]["ranks_agree"] == "yes" else "what ranks have together differs"


def _steps_at(args, rate):
    """50 steps; where ranks are apart for long, several rounds."""
    variants = {}
    for name, way in AT_ONCE.items():
        every = min(way.get("diloco_configs", {}).get("sync_every", 0), 400)
        count, warmup = (2 * every, every) if every else (50, 10)
        variants[f"argosy_{name}"] = _over_hosts(args, rate, _program(args, way, "--steps", count, "--warmup", warmup))
    name = f"step_{rate}"
    # The goal: at 10 Mbit/s nine tenths of the speed without a network.
    pairs = [("argosy_streaming_400", "argosy_no_network", 1 / 0.9)] if rate == "10mbit" else []
    return Case("traffic", name, variants, [Measure(name, "ms", samples_ms, pairs), Measure(f"{name}_sent", "kB", _sent_kb)], _check)


def _steps_to_target(args, seed):
    options = ["--target", TARGET, "--most", MOST, "--seed", seed]
    variants = {}
    for name, way in BEGUN.items():
        program, *rest = _program(args, way, *options)
        variants[f"argosy_{name}"] = ours(args, program.name, *rest, ranks=2)
    name = f"steps_to_{TARGET}_seed_{seed}"
    return Case("traffic", name, variants, [Measure(name, "steps", samples)], _check)


def cases(args):
    if os.geteuid() == 0:
        for rate in RATES:
            yield _steps_at(args, rate)
    else:
        print("traffic: steps over links are left out, network namespaces need root", file=sys.stderr)
    for seed in SEEDS:
        yield _steps_to_target(args, seed)
