"""What fit() costs beside a loop of the same parts, written by hand."""

from suites.base import Case, Measure, ours


ONE_THREAD = ["OMP_NUM_THREADS=1"]  # as many as a rank's core


def _percent(run):
    return run["objects"][0]["overhead_percent"]


def _all_percent(run):
    return [run["objects"][0]["overhead_of_all_percent"]]


def _microseconds(run):
    return run["objects"][0]["overhead_us"]


def _check(run, _others):
    mine = run["objects"][0]
    if mine["same_weights"] != "yes":
        return "the two models have different weights in the end"
    if not mine["loss_last"] < mine["loss_first"]:
        return f"the loss does not fall: {mine['loss_first']} to {mine['loss_last']}"
    return None


def _case(args, name, model, ranks, epochs):
    command = ("bench_fit_overhead", model, "--epochs", epochs)
    variants = {
        "argosy": ours(args, *command, ranks=ranks, env=ONE_THREAD),
        "control": ours(args, *command, "--control", ranks=ranks, env=ONE_THREAD),
    }
    measures = [
        Measure(f"{name}: ten batches", "%", _percent, limits=[("argosy", "<=", 1)]),
        Measure(f"{name}: all batches", "%", _all_percent),
        Measure(f"{name}: one batch", "us", _microseconds),
    ]
    return Case("fit", name, variants, measures, _check)


def _fixed(args, name, ranks):
    """A model that costs nothing: what is left is what fit() does for a batch, whatever it trains."""
    command = ours(args, "bench_fit_overhead", "nothing", "--epochs", 40, ranks=ranks, env=ONE_THREAD)
    return Case("fit", name, {"argosy": command}, [Measure(name, "us", _microseconds)], _check)


def cases(args):
    yield _fixed(args, "nothing_1_rank", 1)
    yield _fixed(args, "nothing", args.nproc)
    yield _case(args, "mnist_cnn_1_rank", "mnist_cnn", 1, 6)
    yield _case(args, "mnist_cnn", "mnist_cnn", args.nproc, 12)
    yield _case(args, "resnet18", "resnet18", args.nproc, 5)
