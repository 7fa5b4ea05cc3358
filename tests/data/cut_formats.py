#!/usr/bin/env python3
"""Cuts the small real samples in this folder out of whole files of the same layout.

    python3 tests/data/cut_formats.py ../shared/data

keypoints/: the first faces of Kaggle's facial-keypoints tables and the questions about them (the layout of
IdLookupTable.csv). mnist/: the first digits of each split of Paddle's mnist.json. flowers102/: both MATLAB files of
Oxford Flowers-102, whole. Packed without a time stamp: the same input gives the same bytes.
"""
import gzip
import json
import os
import shutil
import sys

TRAINING_FACES, TEST_FACES = 8, 3
DIGITS = (80, 40, 40)  # train, valid, test


def pack(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        packed.write(data)


def cut_faces(source, target):
    for name, rows in (("training.csv.gz", TRAINING_FACES), ("test.csv.gz", TEST_FACES)):
        with gzip.open(os.path.join(source, name), "rb") as file:
            pack(os.path.join(target, name), b"".join(next(file) for _ in range(rows + 1)))
    with gzip.open(os.path.join(source, "training.csv.gz"), "rt") as file:
        features = next(file).strip().split(",")[:-1]
    with open(os.path.join(target, "IdLookupTable.csv"), "w", newline="") as file:
        file.write("RowId,ImageId,FeatureName,Location\n")
        row = 0
        for image in range(1, TEST_FACES + 1):
            for feature in features[:: image * image]:  # the contest asks for fewer points of some faces
                row += 1
                file.write(f"{row},{image},{feature},\n")


def cut_digits(source, target):
    with gzip.open(os.path.join(source, "mnist.json.gz"), "rb") as file:
        splits = json.load(file)
    cut = [[images[:n], labels[:n]] for (images, labels), n in zip(splits, DIGITS)]
    pack(os.path.join(target, "mnist.json.gz"), json.dumps(cut).encode())


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    source, target = sys.argv[1], os.path.dirname(os.path.abspath(__file__))
    cut_faces(os.path.join(source, "keypoints"), os.path.join(target, "keypoints"))
    cut_digits(os.path.join(source, "mnist"), os.path.join(target, "mnist"))
    os.makedirs(os.path.join(target, "flowers102"), exist_ok=True)
    for name in ("imagelabels.mat", "setid.mat"):
        shutil.copyfile(os.path.join(source, "flowers102", name), os.path.join(target, "flowers102", name))


if __name__ == "__main__":
    main()
