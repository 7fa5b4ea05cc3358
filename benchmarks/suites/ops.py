"""Operators of ours beside libtorch's, each where a model has it."""

from suites.base import Case, Measure, ours, samples_ms


def _check(run, others):
    mine = run["objects"][0]["checksums"]
    for other in (o["objects"][0]["checksums"] for o in others):
        for number, (a, b) in enumerate(zip(mine, other, strict=True)):
            if abs(a - b) > 1e-4 * abs(b):
                return f"sum of squares {number} is {a}, another variant's {b}"
    return None


def cases(args):
    variants = {"argosy": ours(args, "bench_norms"), "libtorch": ours(args, "bench_norms", "--plain")}
    yield Case("ops", "norms", variants, [Measure("norms", "ms", samples_ms, [("argosy", "libtorch", None)])], _check)
