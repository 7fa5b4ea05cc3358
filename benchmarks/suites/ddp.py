"""Training steps of DistributedDataParallel."""

from pathlib import Path

from suites.base import TCMALLOC, Case, Measure, check_step, ours, pairs_with, peer, samples_ms, with_peers

# Ours / DDP as it comes, with channels_last, with tcmalloc too, compiled besides: by the engine that we run on.
RESNET18 = {"debian": (0.72, 0.82, 0.87, 0.80), "own": (0.68, 0.77, 0.82, 0.80)}
RESNET18_BF16 = (0.58, 0.62, 0.70, 0.68)
ONE_RANK = {"debian": (0.83, 0.75), "own": (0.77, 0.75)}
MNIST_CNN = (0.38, 0.52, 0.70, 0.45)
MNIST_CNN_BF16 = (0.30, 0.42, 0.55, 0.48)
BF16_OF_F32 = {"resnet18": 0.52, "mnist_cnn": 0.75}


def _peers(args, model, *options):
    """DDP as PyTorch's tutorials write it, as its performance guide does, that with tcmalloc, and compiled too."""
    tuned = peer(args, "train_step.py", model, *options, "--tuned")
    malloc = ["env", f"LD_PRELOAD={TCMALLOC}"] if TCMALLOC.exists() else []
    return {
        "torch_default": peer(args, "train_step.py", model, *options),
        "torch_channels_last": tuned,
        **({"torch_tcmalloc": [*malloc, *tuned]} if malloc else {}),
        "torch_compiled": [*malloc, *tuned, "--compile"],
    }


PEERS = ("torch_default", "torch_channels_last", "torch_tcmalloc", "torch_compiled")


def _targets(args, peers, targets, names=PEERS):
    return pairs_with(args, [("argosy", name, target) for name, target in zip(names, targets) if name in peers])


def _has_bf16():
    """Whether the CPU has instructions for it."""
    return any(flag in Path("/proc/cpuinfo").read_text() for flag in ("avx512_bf16", "amx_bf16"))


def _slowest_ms(run):
    """Of each step the time of the rank that took longest; PyTorch's programs do not say."""
    return run["objects"][0].get("slowest_ms", [])


def _beside_floor(args, name, options, floor, targets):
    """The step, and the same steps in processes that do not exchange a word: the floor; or one word, when they begin."""
    mine = ours(args, "bench_train_step", name, *options)
    alone = {"floor": [*mine, "--independent"], "floor_in_step": [*mine, "--independent", "--in_step"]}
    peers = _peers(args, name, *options)
    return Case(
        "ddp",
        name,
        with_peers(args, {"argosy": mine, **alone}, peers),
        [
            Measure(
                name,
                "ms",
                samples_ms,
                [("argosy", "floor", floor), ("argosy", "floor_in_step", None), *_targets(args, peers, targets)],
            ),
            # A coupled step cannot end before the slower of two cores: what coupling costs beyond that.
            Measure(f"{name}_slower_rank", "ms", _slowest_ms, [("argosy", "floor", None), ("argosy", "floor_in_step", None)]),
        ],
        # Convolutions round differently, and Adam magnifies it: only the first loss is comparable.
        check_step(exact_end=False),
    )


def _in_bf16(args, name, options, targets):
    """Under autocast, beside the same step in f32."""
    amp = [*options, "--amp", "bf16"]
    peers = _peers(args, name, *amp)
    own = {"argosy": ours(args, "bench_train_step", name, *amp), "f32": ours(args, "bench_train_step", name, *options)}
    alone = {"floor": [*own["argosy"], "--independent"]}
    of_f32 = BF16_OF_F32[name] if _has_bf16() else None
    return Case(
        "ddp",
        f"{name}_bf16",
        with_peers(args, {**own, **alone}, peers),
        [
            Measure(
                f"{name}_bf16",
                "ms",
                samples_ms,
                [("argosy", "f32", of_f32), ("argosy", "floor", None), *_targets(args, peers, targets)],
            )
        ],
        check_step(exact_end=False, start=0.01),
    )


def _sized(args):
    peers = _peers(args, "resnet18_sized")
    del peers["torch_compiled"]
    return Case(
        "ddp",
        "resnet18_sized",
        with_peers(args, {"argosy": ours(args, "bench_train_step", "resnet18_sized")}, peers),
        [Measure("resnet18_sized", "ms", samples_ms, _targets(args, peers, (1.0, 1.0, 1.0)))],
        check_step(exact_end=True),
    )


def _ranks(args, ranks):
    """More ranks than cores."""
    options = ["resnet18", "--steps", 5, "--warmup", 2]
    name = f"resnet18_{ranks}_ranks"
    target = RESNET18[args.engine][0]
    return Case(
        "ddp",
        name,
        with_peers(
            args,
            {"argosy": ours(args, "bench_train_step", *options, ranks=ranks)},
            {"torch_default": peer(args, "train_step.py", *options, ranks=ranks)},
        ),
        [Measure(name, "ms", samples_ms, pairs_with(args, [("argosy", "torch_default", target)]))],
        check_step(exact_end=False),
    )


def _one_rank(args):
    options = ["resnet18", "--steps", 12, "--warmup", 4]
    peers = {
        "torch_default": peer(args, "train_step.py", *options, ranks=1),
        "torch_compiled": peer(args, "train_step.py", *options, "--tuned", "--compile", ranks=1),
    }
    return Case(
        "ddp",
        "resnet18_1_rank",
        with_peers(args, {"argosy": ours(args, "bench_train_step", *options, ranks=1)}, peers),
        [Measure("resnet18_1_rank", "ms", samples_ms, _targets(args, peers, ONE_RANK[args.engine], peers))],
        check_step(exact_end=False),
    )


def _checks(args):
    """What a step pays for comparing the ranks, and for looking at each gradient. `control`: the measurement itself."""
    step = ours(args, "bench_train_step", "mnist_cnn")
    variants = {
        "argosy": step,
        "without_drift": [*step, "--drift_unchecked"],
        "without_finite": [*step, "--gradients_unchecked"],
        "without_both": [*step, "--drift_unchecked", "--gradients_unchecked"],
        "control": step,
    }
    pairs = [("argosy", other, None) for other in ("without_drift", "without_finite", "without_both", "control")]
    return Case(
        "ddp",
        "mnist_cnn_checks",
        variants,
        [Measure("mnist_cnn_checks", "ms", samples_ms, pairs)],
        check_step(exact_end=True),
        least_reps=30,
    )


def cases(args):
    resnet18 = RESNET18[args.engine]
    yield _beside_floor(args, "resnet18", ["--steps", 12, "--warmup", 3], 0.97, resnet18)
    yield _beside_floor(args, "mnist_cnn", [], 1.0, MNIST_CNN)
    yield _in_bf16(args, "resnet18", ["--steps", 12, "--warmup", 3], RESNET18_BF16)
    yield _in_bf16(args, "mnist_cnn", [], MNIST_CNN_BF16)
    yield _checks(args)
    yield _sized(args)
    yield _one_rank(args)
    yield _ranks(args, 4)
    yield _ranks(args, 8)
