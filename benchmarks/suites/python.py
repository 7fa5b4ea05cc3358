"""PyTorch's DistributedDataParallel and all_reduce over argosy.torch, beside the same over Gloo."""

from suites.base import Case, Measure, check_step, peer, samples_ms
from suites.collectives import SIZES

# The model with next to no arithmetic, and one with much: ours / Gloo's.
STEPS = {"resnet18_sized": 0.5, "resnet18": 0.9}


def _both(args, script, *options):
    """The same program over both backends."""
    over_gloo = peer(args, script, *options)
    return {"argosy": ["env", "PEER_BACKEND=argosy", *over_gloo], "torch_gloo": over_gloo}


def _samples_of(size):
    return lambda run: next(o["samples_us"] for o in run["objects"] if o["bytes"] == size)


def _right_sums(run, _others):
    wrong = sum(o["wrong"] for o in run["objects"])
    return f"{wrong} wrong elements" if wrong else None


def cases(args):
    if not args.peers:
        return
    yield Case(
        "python",
        "python_all_reduce",
        _both(args, "all_reduce.py", "--bytes", *[size for _, size, _, _ in SIZES]),
        [
            Measure(name, "us", _samples_of(size), [("argosy", "torch_gloo", target)], bytes=size)
            for name, size, target, _ in SIZES
        ],
        _right_sums,
    )
    for model, target in STEPS.items():
        yield Case(
            "python",
            f"python_{model}",
            _both(args, "train_step.py", model),
            [Measure(f"python_{model}", "ms", samples_ms, [("argosy", "torch_gloo", target)])],
            check_step(exact_end=True),
        )
