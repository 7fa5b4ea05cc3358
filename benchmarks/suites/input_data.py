"""Data sets as the programs of the suite `input` read them, made once in the scratch folder.

From --pictures, a folder with flowers102/102flowers.tgz, cifar10/cifar-10-binary.tar.gz, mnist/*.gz and
keypoints/training.csv.gz. For each: where it will lie, and what makes it, which is False where its files are not there.
"""

import gzip
import os
import shutil
import subprocess
import sys
import tarfile
from functools import partial
from pathlib import Path

COPIES = 4  # of each photograph: an epoch is then long enough to be timed
FACES = 7049  # rows of the contest's own table
TO_JSON = Path(__file__).resolve().parents[2] / "tests" / "data" / "mnist_to_json.py"


def _there(path):
    if not path.exists():
        print(f"note: {path} is not there: what reads it is left out")
    return path.exists()


def flowers(args):
    """A folder of JPEGs for each class, as torchvision's ImageFolder wants it (the classes are made up)."""
    folder = args.scratch / "flowers"
    return folder, partial(_make_flowers, args.pictures / "flowers102" / "102flowers.tgz", folder)


def _make_flowers(packed, folder):
    if folder.exists() or not _there(packed):
        return folder.exists()
    with tarfile.open(packed) as archive:
        for number, member in enumerate(m for m in archive if m.name.endswith(".jpg")):
            place = folder / f"class{number % 4}"
            place.mkdir(parents=True, exist_ok=True)
            first = place / f"{number:05}-0.jpg"
            first.write_bytes(archive.extractfile(member).read())
            for copy in range(1, COPIES):
                os.link(first, place / f"{number:05}-{copy}.jpg")
    return True


def cifar10(args):
    packed = args.pictures / "cifar10" / "cifar-10-binary.tar.gz"
    return packed, partial(_there, packed)


def mnist(args):
    """torchvision's root; ours reads it too."""
    return args.scratch, partial(_make_mnist, args.pictures / "mnist", args.scratch / "MNIST" / "raw")


def _make_mnist(packed, raw):
    if not _there(packed / "train-images-idx3-ubyte.gz"):
        return False
    raw.mkdir(parents=True, exist_ok=True)
    for name in packed.glob("*-ubyte.gz"):
        with gzip.open(name) as source, open(raw / name.stem, "wb") as target:
            shutil.copyfileobj(source, target)
    return True


def mnist_json(args):
    written = args.scratch / "mnist.json.gz"
    return written, partial(_make_mnist_json, args.pictures / "mnist", written)


def _make_mnist_json(packed, written):
    if not _there(packed / "train-images-idx3-ubyte.gz"):
        return False
    subprocess.run([sys.executable, TO_JSON, packed, written], check=True, stdout=subprocess.DEVNULL)
    return True


def keypoints(args):
    """The table with as many rows as the contest's has, by repeating the ones that are there."""
    plain = args.scratch / "training.csv"
    return plain, partial(_make_keypoints, args.pictures / "keypoints" / "training.csv.gz", plain)


def _make_keypoints(packed, plain):
    if not _there(packed):
        return False
    with gzip.open(packed) as file:
        header, *rows = file.read().splitlines(keepends=True)
    plain.write_bytes(header + b"".join(rows[i % len(rows)] for i in range(FACES)))
    return True
