"""Memory of a rank beside its model's own parameters and gradients."""

from suites.base import Case, Measure, check_step, ours, pairs_with, peer, with_peers


def _beside_the_model(run):
    """PSS: what ranks share counts in equal parts for each."""
    mine = run["objects"][0]
    return [mine["pss_mb"] - mine["model_mb"]]


def cases(args):
    options = ["resnet18_sized", "--steps", 10, "--warmup", 5]
    yield Case(
        "memory",
        "resnet18_sized",
        with_peers(
            args,
            {"argosy": ours(args, "bench_train_step", *options)},
            {"torch_default": peer(args, "train_step.py", *options)},
        ),
        [Measure("per_rank", "MB", _beside_the_model, pairs_with(args, [("argosy", "torch_default", 0.5)]))],
        check_step(exact_end=True),
    )
