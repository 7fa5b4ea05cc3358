"""Keypoints CSV and MNIST JSON read by pandas/NumPy and json, beside bench_read_files, in turns.

    python benchmarks/peers/read_files.py --bin build/release/bin/bench_read_files \
        --keypoints training.csv [--rows 7049] --mnist-json mnist.json.gz

--rows repeats the CSV's rows up to that many, as the contest's own file has. Prints one line of JSON for
each file: medians and spread (largest less smallest, over the median) in seconds, and the ratio. Sums of what was
read must agree, or nothing is printed for it. Every process reads once: nothing is warm but the page cache.
"""
import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def peer_keypoints(path):
    """read_csv and the Image column as bytes; (seconds, numbers, sum)."""
    import numpy
    import pandas

    begin = time.perf_counter()
    table = pandas.read_csv(path)
    images = [numpy.fromstring(text, dtype=numpy.uint8, sep=" ") for text in table["Image"]]
    pixels = numpy.stack(images)
    points = table.drop(columns="Image").to_numpy(dtype=numpy.float32)
    assert len(points) == len(pixels)
    return time.perf_counter() - begin, pixels.size, float(pixels.sum())


def peer_mnist_json(path):
    """gzip and json alone: lists of floats, no arrays yet; (seconds, numbers, sum)."""
    begin = time.perf_counter()
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        splits = json.load(file)
    seconds = time.perf_counter() - begin
    images = splits[0][0]
    return seconds, sum(map(len, images)), sum(map(sum, images))


PEERS = {"keypoints": peer_keypoints, "mnist_json": peer_mnist_json}


def run_peer(kind, path):
    """In a process of its own, without its start and imports."""
    code = (
        "import sys, json, warnings; warnings.simplefilter('ignore')\n"
        f"sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})\n"
        f"import read_files{', numpy, pandas' if kind == 'keypoints' else ''}\n"
        f"seconds, numbers, total = read_files.PEERS[{kind!r}]({path!r})\n"
        "print(json.dumps({'seconds': seconds, 'numbers': numbers, 'sum': total}))\n"
    )
    return json.loads(subprocess.run([sys.executable, "-B", "-c", code], check=True, capture_output=True, text=True).stdout)


def run_own(binary, kind, path):
    return json.loads(subprocess.run([binary, kind, path], check=True, capture_output=True, text=True).stdout)


def repeated(path, rows, folder):
    """The table with as many rows, and its packed form."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        header, *lines = file.read().splitlines(keepends=True)
    plain = os.path.join(folder, "training.csv")
    with open(plain, "wb") as file:
        file.write(header)
        for i in range(rows):
            file.write(lines[i % len(lines)])
    subprocess.run(["gzip", "-k", plain], check=True)
    return plain


def summary(times):
    median = statistics.median(times)
    return {"median": round(median, 4), "spread": round((max(times) - min(times)) / median, 3)}


def compare(binary, kind, path, repetitions):
    own, peer = [], []
    for _ in range(repetitions):
        ours, theirs = run_own(binary, kind, path), run_peer(kind, path)
        if ours["numbers"] != theirs["numbers"] or abs(ours["sum"] - theirs["sum"]) > 1e-6 * abs(theirs["sum"]):
            sys.exit(f"{kind} {path}: results differ: {ours} and {theirs}")
        own.append(ours["seconds"])
        peer.append(theirs["seconds"])
    row = {"file": kind, "name": os.path.basename(path), "bytes": os.path.getsize(path), "argosy_s": summary(own), "peer_s": summary(peer)}
    row["ratio"] = round(row["peer_s"]["median"] / row["argosy_s"]["median"], 1)
    print(json.dumps(row), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--keypoints")
    parser.add_argument("--rows", type=int, default=7049)
    parser.add_argument("--mnist-json")
    parser.add_argument("--repetitions", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.keypoints:
            plain = repeated(args.keypoints, args.rows, folder)
            for path in (plain, plain + ".gz"):
                compare(args.bin, "keypoints", path, args.repetitions)
        if args.mnist_json:
            compare(args.bin, "mnist_json", args.mnist_json, args.repetitions)


if __name__ == "__main__":
    main()
