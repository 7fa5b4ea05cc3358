"""Operators of ours beside libtorch's, each where a model has it."""

from suites.base import Case, Measure, ours, samples_ms


def _check(run, others):
    mine = run["objects"][0]["checksum"]
    for other in (o["objects"][0]["checksum"] for o in others):
        if abs(mine - other) > 1e-4 * abs(other):
            return f"the sum of the gradients' squares is {mine}, another variant's {other}"
    return None


def cases(args):
    variants = {"argosy": ours(args, "bench_norms"), "libtorch": ours(args, "bench_norms", "--plain")}
    yield Case("ops", "norms", variants, [Measure("norms", "ms", samples_ms, [("argosy", "libtorch", None)])], _check)
