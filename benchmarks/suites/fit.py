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


def cases(args):
    for model in ("mnist_cnn", "resnet18"):
        for ranks in (1, args.nproc):
            name = model if ranks > 1 else f"{model}_1_rank"
            # argosy: as users have it; argosy_silent: verbose = 0.
            variants = {
                "argosy": ours(args, "bench_fit_overhead", model, ranks=ranks),
                "argosy_silent": ours(args, "bench_fit_overhead", model, "--verbose", 0, ranks=ranks),
            }
            limits = [(variant, "<=", 1) for variant in variants]
            yield Case("fit", name, variants, [Measure(name, "%", _percent, limits=limits)], _check)
            if args.nproc == 1:
                break
