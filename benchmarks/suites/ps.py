"""Rows on a parameter server: pulls and pushes of a batch beside a copy of as many bytes."""

from statistics import median

from suites.base import Case, Measure, check_nothing, ours, samples_ms


def _beside(name, limit):
    """How many copies (or gathers) of the batch's rows take as long: the median of a run."""
    return lambda run: [median(run["objects"][0][f"{name}_us"]) / median(run["objects"][0][f"{limit}_us"])]


def _time(name):
    return lambda run: run["objects"][0][f"{name}_us"]


def _resident(run):
    return [run["objects"][0]["resident_bytes"] / run["objects"][0]["row_bytes"]]


def _right(run, _others):
    return None if run["objects"][0]["unique"] > 1000 else "the batches have too few different ids"


def _served(args, servers, workers, *options):
    roles = ["--server_num", servers, "--worker_num", workers]
    return [args.bin / "argosy", "launch", *roles, "--log_dir=", args.bin / "bench_ps_training", *options]


def _starts_alike(run, others):
    first = run["objects"][0]["loss_first"]
    apart = [other for other in others if abs(other["objects"][0]["loss_first"] - first) > 1e-4 * first]
    return f"the first loss is {first}, another variant's is another" if apart else None


def cases(args):
    table = ["--rows", 4_000_000, "--ids", 100_000, "--dim", 16, "--samples", 20]
    launch = [args.bin / "argosy", "launch", "--run_mode", "rpc", "--nproc_per_node", 2, "--log_dir="]
    yield Case(
        "ps",
        "rows",
        {
            "argosy": [*launch, args.bin / "bench_ps_rows", "--served", *table],
            "argosy_here": ours(args, "bench_ps_rows", *table, ranks=1),
            "two_threads": ours(args, "bench_ps_rows", *table, "--threads", 2, ranks=1),
        },
        [
            *[Measure(f"{name}_us", "us", _time(name)) for name in ("deal", "pull", "push", "copy", "gather")],
            # Half of a copy's bandwidth.
            *[Measure(f"{name}_copies", "copies", _beside(name, "copy"), limits=[("argosy", "<=", 2)]) for name in ("pull", "push")],
            # Beside reading as many rows at random places that are known.
            *[Measure(f"{name}_gathers", "gathers", _beside(name, "gather")) for name in ("pull", "push")],
        ],
        _right,
    )
    # As many as a server may have: what the process takes, of the rows' own bytes.
    yield Case(
        "ps",
        "many_rows",
        {"argosy_here": ours(args, "bench_ps_rows", "--rows", 100_000_000, "--samples", 5, ranks=1)},
        [Measure("resident_of_rows", "times", _resident, limits=[("argosy_here", "<=", 1.3)])],
        _right,
    )
    yield Case(
        "ps",
        "training",
        {
            "argosy": _served(args, 1, 2),
            "collectives": ours(args, "bench_train_step", "mnist_cnn", ranks=2),
        },
        # MnistCnn with one server, each step's gradients averaged as by collectives.
        [Measure("mnist_cnn_sync", "ms", samples_ms, [("argosy", "collectives", 1.5)])],
        _starts_alike,
    )
    slow = ["--mode", "async", "--steps", 200]
    yield Case(
        "ps",
        "slow_worker",
        {
            "argosy": _served(args, 1, 2, *slow, "--slow_ms", 60),
            "without": _served(args, 1, 1, *slow),
        },
        # The first worker's step beside one that sleeps, and without that one: 0.9 of the throughput.
        [Measure("mnist_cnn_async", "ms", samples_ms, [("argosy", "without", 1 / 0.9)])],
        check_nothing,
    )
