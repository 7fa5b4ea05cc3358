"""Steps over hosts with links of a stated rate: the points of docs/design/scaling.md. Needs root (network namespaces)."""

import os
import sys

from suites.base import HERE, Case, Measure, check_step, samples_ms

SIZED = ["resnet18_sized", "--steps", 12, "--warmup", 4]
RESNET18 = ["resnet18", "--steps", 6, "--warmup", 3]
# Hosts × ranks of each. Every shape of several hosts has one of a single host with as many ranks beside it.
SHAPES = [(1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (1, 4), (4, 1), (2, 2)]


def _on_hosts(args, hosts, ranks, rate, program):
    shape = ["--hosts", hosts, "--ranks", ranks, "--rate", rate]
    return [sys.executable, HERE / "hosts.py", *shape, "--argosy", args.bin / "argosy", "--", *program]


def _samples_of(key):
    def samples(run):
        mine = run["objects"][0]
        return mine[key] if mine["ranks"] > 1 else []  # one rank reduces nothing

    return samples


def _case(args, model, rate, shapes):
    name = f"{model[0]}_{rate}"
    variants = {
        f"argosy_{hosts}x{ranks}": _on_hosts(args, hosts, ranks, rate, [args.bin / "bench_train_step", *model])
        for hosts, ranks in shapes
    }
    measures = [Measure(name, "ms", samples_ms)]
    measures += [Measure(f"{name}_{part}", "ms", _samples_of(f"{part}_ms")) for part in ("backward", "exposed")]
    return Case("scaling", name, variants, measures, _check)


def _check(run, _others):
    """Other numbers of ranks see other data: only what is true of one run."""
    return check_step(exact_end=False)(run, [])


def cases(args):
    if os.geteuid() != 0:
        print("scaling: left out, network namespaces need root", file=sys.stderr)
        return
    for rate in ("1gbit", "4gbit"):
        yield _case(args, SIZED, rate, SHAPES)
    yield _case(args, RESNET18, "1gbit", [(1, 2), (2, 1), (1, 4), (2, 2)])
    yield _case(args, RESNET18, "4gbit", [(1, 2), (2, 1)])
