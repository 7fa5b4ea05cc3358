"""What fit() costs beside a loop of the same parts, written by hand."""

from suites.base import Case, Measure, ours


def _percent(run):
    return run["objects"][0]["overhead_percent"]


def _check(run, _others):
    mine = run["objects"][0]
    if mine["same_weights"] != "yes":
        return "the two models have different weights in the end"
    if not mine["loss_last"] < mine["loss_first"]:
        return f"the loss does not fall: {mine['loss_first']} to {mine['loss_last']}"
    return None


def _case(args, name, model, ranks, repetitions):
    options = (model, "--repetitions", repetitions)
    variants = {  # argosy: as users have it; argosy_silent: verbose = 0
        "argosy": ours(args, "bench_fit_overhead", *options, ranks=ranks),
        "argosy_silent": ours(args, "bench_fit_overhead", *options, "--verbose", 0, ranks=ranks),
    }
    limits = [(variant, "<=", 1) for variant in variants]
    return Case("fit", name, variants, [Measure(name, "%", _percent, limits=limits)], _check)


def cases(args):
    yield _case(args, "mnist_cnn_1_rank", "mnist_cnn", 1, 12)
    yield _case(args, "mnist_cnn", "mnist_cnn", args.nproc, 12)
    yield _case(args, "resnet18", "resnet18", args.nproc, 6)
