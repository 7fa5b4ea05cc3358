"""Rows on a parameter server: pulls and pushes of a batch beside a copy of as many bytes."""

from statistics import median

from suites.base import Case, Measure, ours


def _copies(name):
    """How many copies of the batch's rows take as long: the median of a run."""
    return lambda run: [median(run["objects"][0][f"{name}_us"]) / median(run["objects"][0]["copy_us"])]


def _time(name):
    return lambda run: run["objects"][0][f"{name}_us"]


def _right(run, _others):
    return None if run["objects"][0]["unique"] > 1000 else "the batches have too few different ids"


def cases(args):
    table = ["--rows", 4_000_000, "--ids", 100_000, "--dim", 16, "--samples", 20]
    launch = [args.bin / "argosy", "launch", "--run_mode", "rpc", "--nproc_per_node", 2, "--log_dir="]
    yield Case(
        "ps",
        "rows",
        {
            "argosy": [*launch, args.bin / "bench_ps_rows", "--served", *table],
            "argosy_here": ours(args, "bench_ps_rows", *table, ranks=1),
        },
        [
            *[Measure(f"{name}_us", "us", _time(name)) for name in ("deal", "pull", "push", "copy")],
            # Half of a copy's bandwidth.
            *[Measure(f"{name}_copies", "copies", _copies(name), limits=[("argosy", "<=", 2)]) for name in ("pull", "push")],
        ],
        _right,
    )
