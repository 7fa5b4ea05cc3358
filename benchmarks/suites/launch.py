"""What the launcher costs, and what it does when something ends."""

import os
import tempfile
from pathlib import Path

from suites.base import HERE, Case, Measure, check_nothing, pairs_with, samples, wall_ms, with_peers


def _launchers(args, what, *options):
    """launch.py on each launcher."""
    figure = ["python3", HERE / "launch.py", what, *options, "--"]
    run = ["--nproc_per_node", args.nproc]
    peers = {
        "torchrun": [*figure, args.peers, "-m", "torch.distributed.run", "--standalone", *run, "--no-python"],
        "paddle": [*figure, args.peers, "-m", "paddle.distributed.launch", *run],
    }
    return with_peers(args, {"argosy": [*figure, (args.bin / "argosy").resolve(), "launch", *run]}, peers)


def cases(args):
    torchrun = [args.peers, "-m", "torch.distributed.run", "--standalone"]
    logs = Path(tempfile.gettempdir()) / "argosy-bench-paddle-log"  # not beside our sources
    paddle = [args.peers, "-m", "paddle.distributed.launch", "--log_dir", logs]
    ranks = ["--nproc_per_node", args.nproc]
    yield Case(
        "launch",
        "start",
        with_peers(
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
                wall_ms,
                pairs_with(args, [("argosy", "torchrun", 1.0), ("argosy", "paddle", 1.0)]),
                limits=[("argosy", "<=", 50)],
            )
        ],
        check_nothing,  # a wrong exit code is a failed run
        warmup_runs=1,
    )

    def figure(what, unit, limit, peers):
        pairs = pairs_with(args, [("argosy", peer, 1.0) for peer in peers])
        return Case(
            "launch",
            what,
            {v: c for v, c in _launchers(args, what).items() if v in ("argosy", *peers)},
            [Measure(what, unit, samples, pairs, limits=[("argosy", "<=", limit)])],
            check_nothing,
        )

    yield figure("killed", "ms", 50, ["torchrun", "paddle"])
    yield figure("respawn", "ms", 200, ["torchrun"])  # Paddle's restarts with etcd only
    yield figure("peak", "MB", 30, ["torchrun", "paddle"])
    # No peer: torchrun's ranks write to the terminal themselves unless it tees, which it does by reading
    # files back.
    log_rate = _launchers(args, "log_rate", "--reps", "3")["argosy"]
    yield Case(
        "launch",
        "log_rate",
        {"argosy": log_rate, "argosy_no_files": [*log_rate, "--log_dir="]},
        [Measure("log_rate", "MB/s", samples, limits=[("argosy_no_files", ">=", 500), ("argosy", ">=", 500)])],
        check_nothing,
        warmup_runs=1,  # the first finds the memory of the disk's cache not there yet
    )
    flood = _launchers(args, "log_flood")["argosy"]
    yield Case("launch", "log_flood", {"argosy": flood}, [Measure("log_flood", "MB/s", samples)], check_nothing)
    yield Case(
        "launch",
        "orphans",
        {"argosy": _launchers(args, "orphans", "--reps", "40")["argosy"]},
        [Measure("orphans", "processes", lambda run: [sum(samples(run))], limits=[("argosy", "<=", 0)])],
        lambda run, others: f"{sum(samples(run))} orphans" if sum(samples(run)) else None,
    )
    yield Case(
        "launch",
        "rendezvous",
        {"argosy": [args.bin / "argosy", "launch", "--nproc_per_node", "256", args.bin / "bench_join"]},
        [Measure("rendezvous_256_ranks", "ms", wall_ms, limits=[("argosy", "<=", 2000)])],
        lambda run, others: None if len(run["objects"]) == 1 else "not all joined",
    )
    yield Case(
        "launch",
        "meeting",
        {"argosy": [args.bin / "bench_meeting", "64"]},
        [
            Measure("meet_64_nodes", "ms", lambda run: [run["objects"][0]["met_ms"]], limits=[("argosy", "<=", 2000)]),
            Measure("failure_known_to_64_nodes", "ms", lambda run: [run["objects"][0]["knows_ms"]]),
        ],
        check_nothing,
    )
    if os.geteuid() == 0:
        yield Case(
            "launch",
            "hosts",
            {"argosy": _launchers(args, "hosts")["argosy"]},
            [Measure("job_on_4_hosts", "ms", samples, limits=[("argosy", "<=", 2000)])],
            check_nothing,
        )
