"""Typed calls between two workers of a host, beside torch.distributed.rpc and a copy."""

from suites.base import Case, Measure, ours, pairs_with, peer, with_peers


def _field(name):
    return lambda run: run["objects"][0][name]


def _right(run, _others):
    wrong = run["objects"][0]["wrong"]
    return f"{wrong} calls got wrong bytes" if wrong else None


def _beside_torch(args, name, target):
    pairs = pairs_with(args, [("argosy", "torch", target)])
    return Measure(f"rpc_{name}", "us", _field(f"{name}_us"), pairs)


def cases(args):
    variants = {"argosy": ours(args, "bench_rpc_calls")}
    yield Case(
        "rpc",
        "rpc_calls",
        with_peers(args, variants, {"torch": peer(args, "rpc_calls.py")}),
        [
            _beside_torch(args, "empty", 0.25),
            _beside_torch(args, "flight", None),
            _beside_torch(args, "sent", None),
            _beside_torch(args, "given", None),
            _beside_torch(args, "copy", None),
        ],
        _right,
    )
