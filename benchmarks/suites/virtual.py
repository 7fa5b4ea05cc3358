"""What virtual ranks cost, beside the same samples without them."""

from suites.base import Case, Measure, check_step, ours, samples_ms

VIRTUAL_RANKS = 8
# Name, model, options of a run, images of a virtual rank: as many as the processes, and eight.
MODELS = [
    ("mnist_cnn", ["mnist_cnn", "--steps", 30, "--warmup", 8], 100, 16),
    ("resnet18_32", ["resnet18", "--side", 32, "--steps", 5, "--warmup", 2], 16, 8),
]


def _beside_the_model_mb(run):
    """Memory of a rank beyond parameters and gradients. Libraries are left out: others may share them."""
    mine = run["objects"][0]
    return [mine["pss_of_data_mb"] - mine["model_mb"]]


def _check(run, others):
    """As many virtual ranks with batches of one size end with the same bits, wherever they are computed."""
    mine = run["objects"][0]
    for other in (o["objects"][0] for o in others):
        same = all(mine[key] == other[key] for key in ("virtual_ranks", "batch"))
        if same and mine["checksum"] != other["checksum"]:
            return f"the parameters' sum is {mine['checksum']} on {mine['ranks']} ranks, {other['checksum']} on {other['ranks']}"
    return check_step(exact_end=False)(run, [])


def _one_each(args, name, model, batch):
    """The option given, with as many virtual ranks as processes. `control`: what the measurement itself shows."""
    without = ours(args, "bench_train_step", *model, "--batch", batch)
    variants = {"argosy": [*without, "--virtual_ranks", args.nproc], "without": without, "control": without}
    pairs = [("argosy", "without", None), ("control", "without", None)]
    return Case(
        "virtual", f"{name}_one_each", variants, [Measure(f"{name}_one_each", "ms", samples_ms, pairs)], _check, least_reps=30
    )


def _eight(args, name, model, batch):
    """Eight batches an update, one pass each; or one pass over those of a process, as one batch."""
    variants, pairs = {}, []
    for ranks in (1, 2, 4):
        words = f"{ranks}_rank" + ("s" if ranks > 1 else "")
        step = ours(args, "bench_train_step", *model, "--batch", batch, ranks=ranks)
        variants[f"argosy_{words}"] = [*step, "--virtual_ranks", VIRTUAL_RANKS]
        variants[f"without_{words}"] = [*step, "--together", VIRTUAL_RANKS // ranks]
        pairs.append((f"argosy_{words}", f"without_{words}", None))
    name = f"{name}_{VIRTUAL_RANKS}"
    measures = [Measure(name, "ms", samples_ms, pairs), Measure(f"{name}_memory", "MB", _beside_the_model_mb)]
    return Case("virtual", name, variants, measures, _check)


def cases(args):
    for name, model, batch, small in MODELS:
        yield _one_each(args, name, model, batch)
        yield _eight(args, name, model, small)
