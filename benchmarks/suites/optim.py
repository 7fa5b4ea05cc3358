"""An optimizer's step over the parameters of a ResNet-18, in one process of one thread."""

from suites.base import PEERS, Case, Measure, pairs_with, samples_ms, with_peers


def _check(run, others):
    mine = run["objects"][0]
    for other in (o["objects"][0] for o in others):
        if "checksum" not in mine or "checksum" not in other:
            continue  # a copy has none
        if abs(mine["checksum"] - other["checksum"]) > 1e-5 * abs(other["checksum"]):
            return f"the sum of the parameters' squares is {mine['checksum']}, another variant's {other['checksum']}"
    return None


def cases(args):
    step = args.bin / "bench_optimizer_step"
    script = [args.peers, PEERS / "optimizer_step.py"]
    pairs = pairs_with(args, [("argosy", "torch_fused", 1.0), ("argosy", "torch_default", 1.0)])
    yield Case(
        "optim",
        "adam",
        with_peers(
            args,
            # copy: as many bytes as a step reads and writes, moved by memcpy.
            {"argosy": [step], "copy": [step, "--copy"]},
            {"torch_default": script, "torch_fused": [*script, "--fused"]},
        ),
        [Measure("adam", "ms", samples_ms, [("argosy", "copy", 1 / 0.8), *pairs])],
        _check,
    )
