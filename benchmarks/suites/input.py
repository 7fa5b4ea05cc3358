"""Delivering batches, without training on them, and reading files."""

import os

from suites import input_data
from suites.base import PEERS, Case, Measure, ours, pairs_with, peer, samples_ms, with_peers


def cases(args):
    yield _fashion_mnist(args)
    yield _flowers(args)
    yield _cifar10(args)
    yield _mnist(args)
    yield _read_case(args, "keypoints", input_data.keypoints(args), "pandas", 1 / 5)
    yield _read_case(args, "mnist_json", input_data.mnist_json(args), "python_json", 1 / 4)
    yield _first_batch(args)


def _us_per_image(run):
    mine = run["objects"][0]
    return [1e3 * ms / mine["images"] for ms in mine["samples_ms"]]


def _delivered(count):
    def check(run, _):
        images = run["objects"][0]["images"]
        return None if images == count else f"{images} images delivered instead of {count}"

    return check


def _same_pictures(run, others):
    """As many images, and as bright: random crops differ, and so does resizing."""
    mine = run["objects"][0]
    for other in (o["objects"][0] for o in others):
        if mine["images"] != other["images"]:
            return f"{mine['images']} images delivered, by another variant {other['images']}"
        if "mean" in mine and "mean" in other and abs(mine["mean"] - other["mean"]) > 0.03:
            return f"the mean of all values is {mine['mean']}, another variant's {other['mean']}"
    return None


def _same_numbers(run, others):
    mine = run["objects"][0]
    for other in (o["objects"][0] for o in others):
        if mine["numbers"] != other["numbers"] or abs(mine["sum"] - other["sum"]) > 1e-6 * abs(other["sum"]):
            return f"{mine['numbers']} numbers with the sum {mine['sum']}, by another variant {other['numbers']}, {other['sum']}"
    return None


def _on(cores, *command):
    """On the last so many cores of those that we may use."""
    mine = sorted(os.sched_getaffinity(0))[-cores:]
    return ["taskset", "-c", ",".join(map(str, mine)), *command]


def _python(args, script, *options):
    return [args.peers, PEERS / script, *options]


def _fashion_mnist(args):
    program, script = "bench_fashion_mnist_epoch", "fashion_mnist_epoch.py"
    root = ("--root", args.root, "--input_only")
    peers = {}
    if args.peers:
        peers = {"torch_default": peer(args, script, *root), "torch_tuned": peer(args, script, *root, "--tuned")}
    if "nvidia-dali-cuda130" in args.peer_versions:
        peers["dali"] = peer(args, "fashion_mnist_input_dali.py", "--root", args.root)
    return Case(
        "input",
        "fashion_mnist",
        with_peers(args, {"argosy": ours(args, program, "--data", args.data, "--input_only")}, peers),
        [Measure("fashion_mnist", "ms", samples_ms, pairs_with(args, [("argosy", name, 1.0) for name in peers]))],
        _delivered(60000),
    )


def _flowers(args):
    folder, prepare = input_data.flowers(args)
    program, loops, script = args.bin / "bench_picture_input", args.bin / "bench_jpeg_loops", "picture_input.py"
    two = ("--num_workers", 2)
    variants = {
        "argosy": _on(1, program, "flowers", folder),
        "argosy_channels_last": _on(1, program, "flowers", folder, "--channels_last"),
        "argosy_2_workers": _on(2, program, "flowers", folder, *two),
    }
    pairs = [("argosy_2_workers", "argosy", 1 / 1.9)]
    if loops.exists():
        variants["jpeg_full"] = _on(1, loops, "full", folder)
        variants["jpeg_naive"] = _on(1, loops, "naive", folder)
        pairs += [("argosy", "jpeg_full", None), ("argosy", "jpeg_naive", None)]
    if args.peers:
        once = ("--epochs", 2)
        variants["torch_pillow"] = _on(1, *_python(args, script, "flowers", folder, *once))
        variants["torch_v2"] = _on(1, *_python(args, script, "flowers", folder, "--tensors", *once))
        variants["torch_pillow_2_workers"] = _on(2, *_python(args, script, "flowers", folder, *two, *once))
        variants["torch_v2_2_workers"] = _on(2, *_python(args, script, "flowers", folder, "--tensors", *two, *once))
        pairs += [("argosy", "torch_pillow", 0.25), ("argosy", "torch_v2", 0.4)]
        pairs += [("argosy_2_workers", f"{name}_2_workers", None) for name in ("torch_pillow", "torch_v2")]
    if "nvidia-dali-cuda130" in args.peer_versions:
        variants["dali"] = _on(1, *_python(args, "picture_input_dali.py", folder))
        variants["dali_2_workers"] = _on(2, *_python(args, "picture_input_dali.py", folder, *two))
        pairs += [("argosy", "dali", 0.4), ("argosy_2_workers", "dali_2_workers", None)]
    measures = [Measure("flowers", "us/image", _us_per_image, pairs)]
    return Case("input", "flowers", variants, measures, _same_pictures, prepare=prepare)


def _cifar10(args):
    path, prepare = input_data.cifar10(args)
    peers = {}
    if args.peers:
        plain = _python(args, "picture_input.py", "cifar10", path)
        peers = {"torch_pillow": _on(1, *plain), "torch_v2": _on(1, *plain, "--tensors")}
    mine = {"argosy": _on(1, args.bin / "bench_picture_input", "cifar10", path, "--epochs", 20)}
    pairs = pairs_with(args, [("argosy", name, 1 / 20) for name in peers])
    measures = [Measure("cifar10", "us/image", _us_per_image, pairs)]
    return Case("input", "cifar10", {**mine, **peers}, measures, _same_pictures, prepare=prepare)


def _mnist(args):
    path, prepare = input_data.mnist(args)
    return Case(
        "input",
        "mnist",
        with_peers(
            args,
            {"argosy": _on(1, args.bin / "bench_picture_input", "mnist", path, "--epochs", 10)},
            {"torch_default": _on(1, *_python(args, "picture_input.py", "mnist", path, "--epochs", 2))},
        ),
        [Measure("mnist", "us/image", _us_per_image, pairs_with(args, [("argosy", "torch_default", 1 / 50)]))],
        _same_pictures,
        prepare=prepare,
    )


def _read_case(args, kind, data, peer_name, target):
    path, prepare = data
    return Case(
        "input",
        kind,
        with_peers(
            args,
            {"argosy": _on(1, args.bin / "bench_read_files", kind, path)},
            {peer_name: _on(1, *_python(args, "read_files.py", kind, path))},
        ),
        [Measure(kind, "ms", samples_ms, pairs_with(args, [("argosy", peer_name, target)]))],
        _same_numbers,
        prepare=prepare,
    )


def _first_batch(args):
    """From the start of a process that nothing has warmed but the page cache."""
    folder, prepare = input_data.flowers(args)

    def timed(*command):
        return ["sh", "-c", 'STARTED=$(date +%s%N) exec "$@"', "sh", *_on(2, *command)]

    options = ("flowers", folder, "--num_workers", 2, "--first_batch")
    peers = {}
    if args.peers:
        peers = {f"torch_{start}": timed(*_python(args, "picture_input.py", *options, "--start", start)) for start in ("spawn", "fork")}
    return Case(
        "input",
        "first_batch",
        with_peers(args, {"argosy": timed(args.bin / "bench_picture_input", *options)}, peers),
        [Measure("first_batch", "ms", samples_ms, pairs_with(args, [("argosy", name, 1 / 20) for name in peers]))],
        _delivered(32),
        prepare=prepare,
    )
