#!/usr/bin/env python3
"""Writes MNIST as Paddle's tutorials have it: one JSON list [train, valid, test], each [[784 floats]…, [labels]].

    python3 tests/data/mnist_to_json.py IDX_FOLDER mnist.json.gz [--counts 50000 10000 10000]

train: the first training images; valid: those from number 50,000 on; test: the first of t10k. Pixels become
pixel / 256, written in full ("0.01171875"). Takes two minutes and little memory for the whole data set.
"""
import argparse
import gzip
import io
import os
import struct

PIXELS = 784
VALID_FROM = 50000


def read_idx(folder, name, header):
    for path in (os.path.join(folder, name), os.path.join(folder, name + ".gz")):
        if os.path.exists(path):
            with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
                fields = struct.unpack(f">{header}I", file.read(4 * header))
                return fields[1], file.read()
    raise SystemExit(f"{folder}: no {name} and no {name}.gz")


def write_split(file, images, labels, begin, count):
    words = [repr(pixel / 256) for pixel in range(256)]
    file.write("[[")
    for i in range(begin, begin + count):
        if i > begin:
            file.write(", ")
        image = images[i * PIXELS : (i + 1) * PIXELS]
        file.write("[" + ", ".join(words[pixel] for pixel in image) + "]")
    file.write("], [" + ", ".join(str(label) for label in labels[begin : begin + count]) + "]]")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("output")
    parser.add_argument("--counts", type=int, nargs=3, default=(50000, 10000, 10000))
    args = parser.parse_args()
    train, valid, test = args.counts
    if not (0 <= train <= VALID_FROM and 0 <= valid <= 10000 and 0 <= test <= 10000):
        parser.error("--counts: at most 50000 10000 10000")
    _, images = read_idx(args.folder, "train-images-idx3-ubyte", 4)
    _, labels = read_idx(args.folder, "train-labels-idx1-ubyte", 2)
    _, test_images = read_idx(args.folder, "t10k-images-idx3-ubyte", 4)
    _, test_labels = read_idx(args.folder, "t10k-labels-idx1-ubyte", 2)
    with open(args.output, "wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
        with io.TextIOWrapper(packed, encoding="ascii", newline="") as file:
            file.write("[")
            write_split(file, images, labels, 0, train)
            file.write(", ")
            write_split(file, images, labels, VALID_FROM, valid)
            file.write(", ")
            write_split(file, test_images, test_labels, 0, test)
            file.write("]")


if __name__ == "__main__":
    main()
