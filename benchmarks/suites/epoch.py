"""An epoch of Fashion-MNIST, from the files to the accuracy."""

from suites.base import Case, Measure, ours, paddle_peer, pairs_with, peer, samples_ms, wall_ms, with_peers


def _check(run, _):
    mine = run["objects"][0]
    if mine["evaluated"] != 10000:
        return f"{mine['evaluated']} test images counted instead of 10000"
    if mine["accuracy"] < 0.8:
        return f"accuracy {mine['accuracy']} after an epoch: below 0.8"
    return None


def cases(args):
    root = ("--root", args.root)
    peers = {}
    if args.peers:
        peers = {
            "torch_default": peer(args, "fashion_mnist_epoch.py", *root),
            "torch_tuned": peer(args, "fashion_mnist_epoch.py", *root, "--tuned"),
            "paddle": paddle_peer(args, "fashion_mnist_epoch_paddle.py", *root),
        }
    targets = {"torch_default": 0.40, "torch_tuned": 1.0, "paddle": 0.20}
    pairs = pairs_with(args, [("argosy", name, target) for name, target in targets.items()])
    yield Case(
        "epoch",
        "fashion_mnist",
        with_peers(args, {"argosy": ours(args, "bench_fashion_mnist_epoch", "--data", args.data)}, peers),
        [Measure("train_and_evaluate", "ms", samples_ms, pairs), Measure("end_to_end", "ms", wall_ms, pairs)],
        _check,
    )
