"""The peer of ../read_files.cpp: a file of numbers read by pandas and NumPy, or by gzip and json.

    python read_files.py keypoints training.csv[.gz]
    python read_files.py mnist_json mnist.json.gz

Imports are not timed. json's lists of floats are not made into arrays, which would cost more.
"""

import gzip
import json
import sys
import time


def keypoints(path):
    """read_csv, and the Image column as bytes."""
    import numpy
    import pandas

    begin = time.perf_counter()
    table = pandas.read_csv(path)
    images = [numpy.fromstring(text, dtype=numpy.uint8, sep=" ") for text in table["Image"]]
    pixels = numpy.stack(images)
    points = table.drop(columns="Image").to_numpy(dtype=numpy.float32)
    ms = (time.perf_counter() - begin) * 1e3
    assert len(points) == len(pixels)
    return ms, pixels.size, float(pixels.sum())


def mnist_json(path):
    begin = time.perf_counter()
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        splits = json.load(file)
    ms = (time.perf_counter() - begin) * 1e3
    images = splits[0][0]
    return ms, sum(map(len, images)), sum(map(sum, images))


def main():
    ms, numbers, total = {"keypoints": keypoints, "mnist_json": mnist_json}[sys.argv[1]](sys.argv[2])
    print(json.dumps({"bench": sys.argv[1], "samples_ms": [ms], "numbers": numbers, "sum": total}))


if __name__ == "__main__":
    main()
