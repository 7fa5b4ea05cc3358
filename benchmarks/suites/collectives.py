"""All-reduce between the ranks of one host."""

from suites.base import Case, Measure, ours, pairs_with, peer, with_peers

KIB, MIB = 1 << 10, 1 << 20
# Size, target beside Gloo (None: reported for the picture), target of a copy's time / ours.
SIZES = [
    ("4KB", 4 * KIB, 0.1, None),
    ("64KB", 64 * KIB, None, None),
    ("1MB", MIB, 0.4, None),
    ("4MB", 4 * MIB, None, None),
    ("32MB", 32 * MIB, 0.4, 0.6),
]


def _check(run, _):
    wrong = sum(o["wrong"] for o in run["objects"])
    return f"{wrong} wrong elements" if wrong else None


def _samples_of(size):
    return lambda run: next(o["samples_us"] for o in run["objects"] if o["bytes"] == size)


def _pairs(args, target, copy):
    """In place is the way of the wrapper's buckets, plain that of any other tensor."""
    pairs = []
    for variant in ("argosy", "argosy_in_place"):
        pairs.append((variant, "argosy_gloo", target))
        pairs += pairs_with(args, [(variant, "torch_gloo", target)])
        pairs.append((variant, "copy", 1 / copy if copy else None))
    return pairs


def cases(args):
    program = "bench_all_reduce"
    sizes = [size for _, size, _, _ in SIZES]
    theirs = ["--bytes", *sizes]
    sizes = ["--bytes", ",".join(map(str, sizes))]
    gloo = ["ARGOSY_BACKEND=gloo"]
    yield Case(
        "collectives",
        "all_reduce",
        with_peers(
            args,
            {
                "argosy": ours(args, program, *sizes),
                "argosy_in_place": ours(args, program, *sizes, "--in_place"),
                "argosy_gloo": ours(args, program, *sizes, env=gloo),
                "copy": ours(args, program, *sizes, "--copy"),
            },
            {"torch_gloo": peer(args, "all_reduce.py", *theirs)},
        ),
        [
            Measure(name, "us", _samples_of(size), _pairs(args, target, copy), bytes=size)
            for name, size, target, copy in SIZES
        ],
        _check,
    )
    small = ["--bytes", 4 * KIB, "--samples", 20]
    yield Case(
        "collectives",
        "eight_ranks",
        {"argosy": ours(args, program, *small, ranks=8), "argosy_gloo": ours(args, program, *small, ranks=8, env=gloo)},
        [Measure("4KB_8_ranks", "us", _samples_of(4 * KIB), [("argosy", "argosy_gloo", 0.2)], bytes=4 * KIB)],
        _check,
    )
