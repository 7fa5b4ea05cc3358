"""What compare.py measures: commands of each variant, which numbers they give, when they are void."""

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

HERE = Path(__file__).resolve().parent
PEERS = HERE / "peers"
SUITES = ["train", "fashion_mnist", "all_reduce", "launcher"]


@dataclass
class Measure:
    """One number of a run."""

    name: str
    unit: str
    samples: Callable  # of a run: the list of its samples, warm-up dropped
    # (ours, peer, target of ours / peer)
    pairs: list = field(default_factory=list)
    bytes: int = 0  # of a collective: for its bandwidth
    limits: list = field(default_factory=list)  # (variant, "<=" or ">=", what the median must keep)


@dataclass
class Case:
    """Variants of the same work, run in turns."""

    suite: str
    name: str
    variants: dict  # name: command
    measures: list
    check: Callable  # (run, runs of the others) -> what is wrong with it, or None
    warmup_runs: int = 0


def _ours(args, program, *options):
    return [args.bin / "argosy", "launch", "--nproc_per_node", args.nproc, args.bin / program, *options]


def _peer(args, script, *options):
    torchrun = [args.peers, "-m", "torch.distributed.run", "--standalone"]
    return [*torchrun, "--nproc_per_node", args.nproc, PEERS / script, *options]


def _pairs(args, pairs):
    return pairs if args.peers else []


def _with_peers(args, ours, peers):
    return {**ours, **(peers if args.peers else {})}


def _samples(run):
    return run["objects"][0]["samples"]


def _samples_ms(run):
    return run["objects"][0]["samples_ms"]


def _check_step(exact_end):
    """Loss must fall, ranks agree, and all variants start (and end) at the same loss."""

    def check(run, others):
        mine = run["objects"][0]
        if mine["ranks_agree"] != "yes":
            return "the ranks' parameters differ"
        if not mine["loss_last"] < mine["loss_first"]:
            return f"the loss does not fall: {mine['loss_first']} to {mine['loss_last']}"
        for other in (o["objects"][0] for o in others):
            for key in ["loss_first"] + (["loss_last"] if exact_end else []):
                if abs(mine[key] - other[key]) > 1e-4 * abs(other[key]):
                    return f"{key} is {mine[key]}, another variant's is {other[key]}"
        return None

    return check


TCMALLOC = Path("/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4")


def _resnet18(args):
    """The real network, beside the floor: the same steps in processes that do not exchange a word."""
    steps = ["--steps", 12, "--warmup", 3]
    tuned = _peer(args, "train_step.py", "resnet18", *steps, "--tuned")
    peers = {"pytorch_ddp": _peer(args, "train_step.py", "resnet18", *steps), "pytorch_ddp_tuned": tuned}
    pairs = [("argosy", "pytorch_ddp", 0.72), ("argosy", "pytorch_ddp_tuned", 0.82)]
    if TCMALLOC.exists():
        peers["pytorch_ddp_tcmalloc"] = ["env", f"LD_PRELOAD={TCMALLOC}", *tuned]
        pairs.append(("argosy", "pytorch_ddp_tcmalloc", 0.87))
    ours = _ours(args, "bench_train_step", "resnet18", *steps)
    return Case(
        "train",
        "resnet18",
        _with_peers(args, {"argosy": ours, "independent": [*ours, "--independent"]}, peers),
        [Measure("resnet18_step", "ms", _samples_ms, [("argosy", "independent", 0.97), *_pairs(args, pairs)])],
        _check_step(exact_end=False),
    )


def _train(args):
    yield _resnet18(args)
    yield Case(
        "train",
        "resnet18_sized",
        _with_peers(
            args,
            {"argosy": _ours(args, "bench_train_step", "resnet18_sized")},
            {
                "pytorch_ddp": _peer(args, "train_step.py", "resnet18_sized"),
                "pytorch_ddp_tuned": _peer(args, "train_step.py", "resnet18_sized", "--tuned"),
            },
        ),
        [
            Measure(
                "resnet18_sized_step",
                "ms",
                _samples_ms,
                _pairs(args, [("argosy", "pytorch_ddp", 1.0), ("argosy", "pytorch_ddp_tuned", 1.0)]),
            )
        ],
        _check_step(exact_end=True),
    )
    yield Case(
        "train",
        "mnist_cnn",
        _with_peers(
            args,
            {"argosy": _ours(args, "bench_train_step", "mnist_cnn")},
            {
                "pytorch_ddp": _peer(args, "train_step.py", "mnist_cnn"),
                "pytorch_ddp_tuned": _peer(args, "train_step.py", "mnist_cnn", "--tuned"),
            },
        ),
        [
            Measure(
                "mnist_cnn_step",
                "ms",
                _samples_ms,
                _pairs(
                    args,
                    [
                        ("argosy", "pytorch_ddp", 1.0),
                        ("argosy", "pytorch_ddp_tuned", 1.0),
                    ],
                ),
            )
        ],
        # Convolutions round differently, and Adam magnifies it: only the first loss is comparable.
        _check_step(exact_end=False),
    )


def _check_epoch(run, _):
    mine = run["objects"][0]
    if mine["evaluated"] != 10000:
        return f"{mine['evaluated']} test images counted instead of 10000"
    if mine["accuracy"] < 0.8:
        return f"accuracy {mine['accuracy']} after an epoch: below 0.8"
    return None


def _fashion_mnist(args, root):
    ours = ("--data", args.data)
    peer = ("--root", root)
    pairs = _pairs(
        args,
        [("argosy", "pytorch_ddp", 1.0), ("argosy", "pytorch_ddp_tuned", 1.0)],
    )
    yield Case(
        "fashion_mnist",
        "epoch",
        _with_peers(
            args,
            {"argosy": _ours(args, "bench_fashion_mnist_epoch", *ours)},
            {
                "pytorch_ddp": _peer(args, "fashion_mnist_epoch.py", *peer),
                "pytorch_ddp_tuned": _peer(args, "fashion_mnist_epoch.py", *peer, "--tuned"),
            },
        ),
        [
            Measure("epoch", "ms", _samples_ms, pairs),
            Measure("end_to_end", "ms", lambda run: [run["wall_ms"]], pairs),
        ],
        _check_epoch,
    )


def _check_sums(run, _):
    wrong = sum(o["wrong"] for o in run["objects"])
    return f"{wrong} wrong elements" if wrong else None


def _all_reduce(args):
    def samples_of(size):
        return lambda run: next(o["samples_us"] for o in run["objects"] if o["bytes"] == size)

    def ours(ranks, *options, backend="auto"):
        launch = [args.bin / "argosy", "launch", "--nproc_per_node", ranks, "--env", f"ARGOSY_BACKEND={backend}"]
        return [*launch, args.bin / "bench_all_reduce", *options]

    def pairs(target, copy=None):
        against_copy = [("argosy", "copy", copy)] if copy else []
        peers = _pairs(args, [("argosy", "pytorch_gloo", target)])
        return [("argosy", "argosy_gloo", target), *against_copy, *peers]

    # At 32 MB: at least 0.6 of the bandwidth of a copy.
    sizes = [("4KB", 4096, pairs(0.1)), ("1MB", 1 << 20, pairs(0.4)), ("32MB", 32 << 20, pairs(0.4, copy=1 / 0.6))]
    yield Case(
        "all_reduce",
        "float_sum",
        _with_peers(
            args,
            {
                "argosy": ours(args.nproc),
                "argosy_gloo": ours(args.nproc, backend="gloo"),
                "copy": ours(args.nproc, "--copy"),
            },
            {"pytorch_gloo": _peer(args, "all_reduce.py")},
        ),
        [Measure(name, "us", samples_of(size), p, bytes=size) for name, size, p in sizes],
        _check_sums,
    )
    small = ["--bytes", 4096, "--samples", 20]
    yield Case(
        "all_reduce",
        "eight_ranks",
        {"argosy": ours(8, *small), "argosy_gloo": ours(8, *small, backend="gloo")},
        [Measure("4KB_8_ranks", "us", samples_of(4096), [("argosy", "argosy_gloo", 0.2)], bytes=4096)],
        _check_sums,
    )


def _launchers(args, what, *options):
    """launch.py on each launcher."""
    figure = ["python3", HERE / "launch.py", what, *options, "--"]
    run = ["--nproc_per_node", args.nproc]
    peers = {
        "torchrun": [*figure, args.peers, "-m", "torch.distributed.run", "--standalone", *run, "--no-python"],
        "paddle": [*figure, args.peers, "-m", "paddle.distributed.launch", *run],
    }
    return _with_peers(args, {"argosy": [*figure, (args.bin / "argosy").resolve(), "launch", *run]}, peers)


def _launcher(args):
    torchrun = [args.peers, "-m", "torch.distributed.run", "--standalone"]
    logs = Path(tempfile.gettempdir()) / "argosy-bench-paddle-log"  # not beside our sources
    paddle = [args.peers, "-m", "paddle.distributed.launch", "--log_dir", logs]
    ranks = ["--nproc_per_node", args.nproc]
    yield Case(
        "launcher",
        "start",
        _with_peers(
            args,
            {"argosy": [args.bin / "argosy", "launch", *ranks, "/bin/true"]},
            {
                "torchrun": [*torchrun, *ranks, "--no-python", "/bin/true"],
                "paddle": [*paddle, *ranks, "/bin/true"],
            },
        ),
        [
            Measure(
                "start",
                "ms",
                lambda run: [run["wall_ms"]],
                _pairs(args, [("argosy", "torchrun", 1.0), ("argosy", "paddle", 1.0)]),
                limits=[("argosy", "<=", 50)],
            )
        ],
        lambda run, others: None,  # a wrong exit code is a failed run
        warmup_runs=1,
    )

    def figure(what, unit, limit, peers):
        pairs = _pairs(args, [("argosy", peer, 1.0) for peer in peers])
        return Case(
            "launcher",
            what,
            {v: c for v, c in _launchers(args, what).items() if v in ("argosy", *peers)},
            [Measure(what, unit, _samples, pairs, limits=[("argosy", "<=", limit)])],
            lambda run, others: None,
        )

    yield figure("killed", "ms", 50, ["torchrun", "paddle"])
    yield figure("respawn", "ms", 200, ["torchrun"])  # Paddle's restarts with etcd only
    yield figure("peak", "MB", 30, ["torchrun", "paddle"])
    # No peer: torchrun's ranks write to the terminal themselves unless it tees, which it does by reading
    # files back.
    log_rate = _launchers(args, "log_rate")["argosy"]
    yield Case(
        "launcher",
        "log_rate",
        {"argosy": log_rate, "argosy_no_files": [*log_rate, "--log_dir="]},
        [Measure("log_rate", "MB/s", _samples, limits=[("argosy_no_files", ">=", 500), ("argosy", ">=", 500)])],
        lambda run, others: None,
    )
    yield Case(
        "launcher",
        "orphans",
        {"argosy": _launchers(args, "orphans", "--reps", "40")["argosy"]},
        [Measure("orphans", "processes", lambda run: [sum(_samples(run))], limits=[("argosy", "<=", 0)])],
        lambda run, others: f"{sum(_samples(run))} orphans" if sum(_samples(run)) else None,
    )
    yield Case(
        "launcher",
        "rendezvous",
        {"argosy": [args.bin / "argosy", "launch", "--nproc_per_node", "256", args.bin / "bench_join"]},
        [Measure("rendezvous_256_ranks", "ms", lambda run: [run["wall_ms"]], limits=[("argosy", "<=", 2000)])],
        lambda run, others: None if len(run["objects"]) == 1 else "not all joined",
    )
    yield Case(
        "launcher",
        "meeting",
        {"argosy": [args.bin / "bench_meeting", "64"]},
        [
            Measure("meet_64_nodes", "ms", lambda run: [run["objects"][0]["met_ms"]], limits=[("argosy", "<=", 2000)]),
            Measure("failure_known_to_64_nodes", "ms", lambda run: [run["objects"][0]["knows_ms"]]),
        ],
        lambda run, others: None,
    )
    if os.geteuid() == 0:
        yield Case(
            "launcher",
            "hosts",
            {"argosy": _launchers(args, "hosts")["argosy"]},
            [Measure("job_on_4_hosts", "ms", _samples, limits=[("argosy", "<=", 2000)])],
            lambda run, others: None,
        )


def cases(suite, args, root):
    """The cases of a suite; `root` is torchvision's folder of Fashion-MNIST (None without peers)."""
    if suite == "train":
        return _train(args)
    if suite == "fashion_mnist":
        return _fashion_mnist(args, root)
    if suite == "all_reduce":
        return _all_reduce(args)
    return _launcher(args)
