"""Training steps of a GPT of 25 M parameters that ranks divide."""

import os
import sys

from suites.base import HERE, Case, Measure, check_step, ours, pairs_with, peer, samples_ms, with_peers

MODEL = "gpt:layers=8,width=512,heads=8,vocab_size=1000,context=256"


def _memory(run):
    return [run["objects"][0]["pss_mb"]]


def _divided(args, ranks, batch, amp):
    """Stage 3 beside data parallelism, the same work in processes that exchange nothing (the floor), and the peers."""
    steps = 8 // (ranks // 2) // (2 if batch > 1 else 1)
    options = ["--batch", batch, "--steps", steps, "--warmup", 3, *(["--amp", "bf16"] if amp else [])]
    mine = ours(args, "bench_sharded_step", "--model", MODEL, *options, ranks=ranks)
    theirs = peer(args, "sharded_step.py", "--tuned", *options, ranks=ranks)
    peers = {f"torch_{way}": [*theirs, "--way", way] for way in ("full", "ddp", "independent")}
    variants = {"argosy": [*mine, "--way", "full"]}
    variants |= {way: [*mine, "--way", way] for way in ("state", "ddp", "independent")}
    name = f"gpt_{ranks}_ranks_batch_{batch}{'_bf16' if amp else ''}"
    return Case(
        "parallel",
        name,
        with_peers(args, variants, peers),
        [
            Measure(
                name,
                "ms",
                samples_ms,
                [
                    ("argosy", "ddp", 1.15),
                    ("argosy", "independent", None),
                    ("state", "ddp", None),
                    *pairs_with(args, [("argosy", "torch_full", None), ("ddp", "torch_ddp", None)]),
                    *pairs_with(args, [("independent", "torch_independent", None)]),
                ],
                excess=pairs_with(args, [("argosy", "independent", "torch_full", "torch_independent", 0.4)]),
            ),
            Measure(f"{name}_memory", "MB", _memory, [("argosy", "ddp", None), *pairs_with(args, [("argosy", "torch_full", None)])]),
        ],
        check_step(exact_end=False, start=0.02),
    )


def _sent(run):
    return [run["objects"][0]["sent_mb"]]


def _on_two_hosts(args):
    """What a host sends in a step, to the other one, over a link of 1 Gbit/s."""
    hosts = [sys.executable, HERE / "hosts.py", "--hosts", 2, "--rate", "1gbit", "--argosy", args.bin / "argosy", "--"]
    program = [*hosts, args.bin / "bench_sharded_step", "--model", MODEL, "--batch", 1, "--steps", 4, "--warmup", 4]
    return Case(
        "parallel",
        "gpt_2_hosts",
        {"argosy": [*program, "--way", "full"], "ddp": [*program, "--way", "ddp"]},
        [
            Measure("gpt_2_hosts", "ms", samples_ms, [("argosy", "ddp", None)]),
            Measure("gpt_2_hosts_sent", "MB", _sent, [("argosy", "ddp", 1.5)]),
        ],
        check_step(exact_end=True),
    )


def _recomputed(args):
    """What is computed again costs time and saves memory."""
    options = ["--batch", 8, "--steps", 8, "--warmup", 2]
    mine = ours(args, "bench_sharded_step", "--model", MODEL, *options, ranks=1)
    theirs = peer(args, "sharded_step.py", "--tuned", *options, "--way", "independent", ranks=1)
    of_theirs = 0.9 if args.engine == "own" else None  # a goal on the peer's own engine
    return Case(
        "parallel",
        "gpt_recompute",
        with_peers(
            args,
            {"argosy": [*mine, "--way", "independent", "--recompute"], "kept": [*mine, "--way", "independent"]},
            {"torch_recompute": [*theirs, "--recompute"], "torch_kept": theirs},
        ),
        [
            Measure("gpt_recompute", "ms", samples_ms, [("argosy", "kept", 1.33), *pairs_with(args, [("argosy", "torch_recompute", None), ("kept", "torch_kept", of_theirs)])]),
            Measure("gpt_recompute_memory", "MB", _memory, [("argosy", "kept", None)]),
        ],
        check_step(exact_end=False, start=0.02),
    )


def cases(args):
    for amp in (False, True):
        for ranks in (2, 4):
            for batch in (1, 8):
                yield _divided(args, ranks, batch, amp)
    yield _recomputed(args)
    if os.geteuid() == 0:
        yield _on_two_hosts(args)
    else:
        print("parallel: gpt_2_hosts is left out, network namespaces need root", file=sys.stderr)
