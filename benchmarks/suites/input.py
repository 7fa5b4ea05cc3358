"""Delivering batches, without training on them."""

from suites.base import Case, Measure, ours, pairs_with, peer, samples_ms, with_peers


def _check(run, _):
    count = run["objects"][0]["images"]
    return None if count == 60000 else f"{count} images delivered instead of 60000"


def cases(args):
    program, script = "bench_fashion_mnist_epoch", "fashion_mnist_epoch.py"
    root = ("--root", args.root, "--input_only")
    peers = {}
    if args.peers:
        peers = {"torch_default": peer(args, script, *root), "torch_tuned": peer(args, script, *root, "--tuned")}
    if "nvidia-dali-cuda130" in args.peer_versions:
        peers["dali"] = peer(args, "fashion_mnist_input_dali.py", "--root", args.root)
    pairs = pairs_with(args, [("argosy", name, 1.0) for name in peers])
    yield Case(
        "input",
        "fashion_mnist",
        with_peers(args, {"argosy": ours(args, program, "--data", args.data, "--input_only")}, peers),
        [Measure("fashion_mnist", "ms", samples_ms, pairs)],
        _check,
    )
