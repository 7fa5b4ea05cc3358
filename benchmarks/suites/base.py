"""What a suite is made of: cases, their variants, what they measure, when they are void."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

HERE = Path(__file__).resolve().parent.parent
PEERS = HERE / "peers"
TCMALLOC = Path("/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4")


@dataclass
class Measure:
    """One number of a run."""

    name: str
    unit: str
    samples: Callable  # of a run: the list of its samples, warm-up dropped
    # (ours, peer, target of ours / peer); a target of None is reported and not judged
    pairs: list = field(default_factory=list)
    bytes: int = 0  # of a collective: for its bandwidth
    limits: list = field(default_factory=list)  # (variant, "<=" or ">=", what the median must keep)
    # (ours, our floor, peer, its floor, target of (ours - floor) / (peer - its floor)): what is added to the same work
    excess: list = field(default_factory=list)


@dataclass
class Case:
    """Variants of the same work, run in turns."""

    suite: str
    name: str
    variants: dict  # name: command
    measures: list
    check: Callable  # (run, runs of the others) -> what is wrong with it, or None
    warmup_runs: int = 0
    prepare: Callable = None  # makes its files; False: what they are made from is not there
    least_reps: int = 0  # unless --reps says how many: more than the other cases, where a difference is small


def ours(args, program, *options, ranks=None, env=()):
    """A program of ours under our launcher."""
    launch = [args.bin / "argosy", "launch", "--nproc_per_node", ranks or args.nproc]
    settings = [word for pair in env for word in ("--env", pair)]
    return [*launch, *settings, args.bin / program, *options]


def peer(args, script, *options, ranks=None):
    """A program of peers/ under the real torchrun."""
    torchrun = [args.peers, "-m", "torch.distributed.run", "--standalone"]
    return [*torchrun, "--nproc_per_node", ranks or args.nproc, PEERS / script, *options]


def paddle_peer(args, script, *options):
    """A program of peers/ under Paddle's launcher."""
    logs = args.scratch / "paddle-logs"  # not beside our sources
    launch = [args.peers, "-m", "paddle.distributed.launch", "--log_dir", logs, "--nproc_per_node", args.nproc]
    return [*launch, PEERS / script, *options]


def pairs_with(args, pairs):
    return pairs if args.peers else []


def with_peers(args, variants, peers):
    return {**variants, **(peers if args.peers else {})}


def samples(run):
    return run["objects"][0]["samples"]


def samples_ms(run):
    return run["objects"][0]["samples_ms"]


def wall_ms(run):
    return [run["wall_ms"]]


def check_step(exact_end, start=1e-4):
    """Loss must fall, ranks agree, variants start (and end) at the same loss; those that tell a checksum, at the same.

    start: how far the first losses may be apart, of their size. Who sums nothing ends elsewhere.
    """

    def check(run, others):
        mine = run["objects"][0]
        if mine["ranks_agree"] != "yes":
            return "the ranks' parameters differ"
        if not mine["loss_last"] < mine["loss_first"]:
            return f"the loss does not fall: {mine['loss_first']} to {mine['loss_last']}"
        for other in (o["objects"][0] for o in others):
            ends_alike = exact_end and mine.get("alone") == other.get("alone")
            for key, apart in [("loss_first", start)] + ([("loss_last", 1e-4)] if ends_alike else []):
                if abs(mine[key] - other[key]) > apart * abs(other[key]):
                    return f"{key} is {mine[key]}, another variant's is {other[key]}"
            sums = [run["layout_checksum"] for run in (mine, other) if "layout_checksum" in run]
            if len(set(sums)) > 1:
                return f"the checksum of the parameters is {sums[0]}, another variant's is {sums[1]}"
        return None

    return check


def check_nothing(_run, _others):
    """A wrong exit code is a failed run; nothing else can be wrong."""
    return None
