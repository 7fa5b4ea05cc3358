"""Steps over hosts with links of a stated rate: the points of docs/design/scaling.md. Needs root (network namespaces)."""

import sys

from suites.base import HERE, Case, Measure, check_step, samples_ms

SIZED = ["resnet18_sized", "--steps", 12, "--warmup", 4]
RESNET18 = ["resnet18", "--steps", 8, "--warmup", 3]


def _on_hosts(args, hosts, ranks, rate, program):
    shape = ["--hosts", hosts, "--ranks", ranks] + (["--rate", rate] if rate else [])
    return [sys.executable, HERE / "hosts.py", *shape, "--argosy", args.bin / "argosy", "--", *program]


def _case(args, name, rate, shapes, options):
    program = [args.bin / "bench_train_step", *options]
    variants = {
        f"argosy_{hosts}x{ranks}": _on_hosts(args, hosts, ranks, rate, program) for hosts, ranks in shapes
    }
    return Case("scaling", name, variants, [Measure(name, "ms", samples_ms)], check_step(exact_end=False))


def cases(args):
    yield _case(args, "sized_1gbit", "1gbit", [(1, 1), (1, 2), (2, 1), (3, 1), (4, 1), (2, 2)], SIZED)
    yield _case(args, "sized_4gbit", "4gbit", [(1, 1), (2, 1), (4, 1)], SIZED)
    yield _case(args, "resnet18_1gbit", "1gbit", [(1, 1), (1, 2), (2, 1)], RESNET18)
    yield _case(args, "resnet18_4gbit", "4gbit", [(2, 1)], RESNET18)
