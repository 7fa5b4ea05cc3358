"""PyTorch's and Paddle's DataParallel and all_reduce over argosy.torch and argosy.paddle, beside the same over Gloo."""

from suites.base import Case, Measure, check_step, paddle_peer, peer, samples_ms
from suites.collectives import SIZES

# The model with next to no arithmetic, under Adam, which has some, under SGD, and with none; and one with much, by pictures of a
# rank. Ours / Gloo's, and steps enough.
STEPS = [
    ("resnet18_sized", [], 0.5, 40),
    ("resnet18_sized", ["--optimizer", "sgd"], 0.5, 40),
    ("resnet18_sized", ["--optimizer", "none"], 0.5, 40),
    ("resnet18", [], 0.9, 12),
    ("resnet18", ["--batch", 8], 0.9, 24),
]


def _both(name, over_gloo):
    """The same program over both backends."""
    return {"argosy": ["env", "PEER_BACKEND=argosy", *over_gloo], name: over_gloo}


def _samples_of(size):
    return lambda run: next(o["samples_us"] for o in run["objects"] if o["bytes"] == size)


def _right_sums(run, _others):
    wrong = sum(o["wrong"] for o in run["objects"])
    return f"{wrong} wrong elements" if wrong else None


def _step(args, model, options, target, steps, tuned):
    """As the tutorial writes it or tuned, and the floor: what the same steps take when nothing is summed."""
    options = [*options, *(["--tuned"] if tuned else [])]
    step = peer(args, "train_step.py", model, "--steps", steps, "--warmup", steps // 4, *options)
    name = "_".join(["python", model, *(str(option).removeprefix("--") for option in options)])
    pairs = [("argosy", "torch_gloo", target), ("torch_alone", "torch_gloo", None)]
    excess = [("argosy", "torch_alone", "torch_gloo", "torch_alone", None)]
    variants = {**_both("torch_gloo", step), "torch_alone": [*step, "--alone"]}
    return Case("python", name, variants, [Measure(name, "ms", samples_ms, pairs, excess=excess)], check_step(exact_end=True))


def cases(args):
    if not args.peers:
        return
    yield Case(
        "python",
        "python_all_reduce",
        _both("torch_gloo", peer(args, "all_reduce.py", "--bytes", *[size for _, size, _, _ in SIZES])),
        [
            Measure(name, "us", _samples_of(size), [("argosy", "torch_gloo", target)], bytes=size)
            for name, size, target, _ in SIZES
        ],
        _right_sums,
    )
    for model, options, target, steps in STEPS:
        for tuned in (False, True):
            yield _step(args, model, options, target, steps, tuned)
    sizes = [size for _, size, _, _ in SIZES]
    yield Case(
        "python",
        "python_paddle_all_reduce",
        _both("paddle_gloo", paddle_peer(args, "paddle_groups.py", "all_reduce", "--bytes", *sizes)),
        [
            Measure(name, "us", _samples_of(size), [("argosy", "paddle_gloo", None)], bytes=size)
            for name, size, _, _ in SIZES
        ],
        _right_sums,
    )
    yield Case(
        "python",
        "python_paddle_resnet18",
        _both("paddle_gloo", paddle_peer(args, "paddle_groups.py", "resnet18")),
        [Measure("python_paddle_resnet18", "ms", samples_ms, [("argosy", "paddle_gloo", None)])],
        check_step(exact_end=True),
    )
