"""Data sets as the programs of the suite `input` read them, made once in the scratch folder.

From --pictures, a folder with flowers102/102flowers.tgz, cifar10/cifar-10-binary.tar.gz, mnist/*.gz and
keypoints/training.csv.gz. Each function gives None where its files are not there.
"""

import gzip
import os
import shutil
import subprocess
import sys
import tarfile
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
    packed, folder = args.pictures / "flowers102" / "102flowers.tgz", args.scratch / "flowers"
    if folder.exists() or not _there(packed):
        return folder if folder.exists() else None
    with tarfile.open(packed) as archive:
        for number, member in enumerate(m for m in archive if m.name.endswith(".jpg")):
            place = folder / f"class{number % 4}"
            place.mkdir(parents=True, exist_ok=True)
            first = place / f"{number:05}-0.jpg"
            first.write_bytes(archive.extractfile(member).read())
            for copy in range(1, COPIES):
                os.link(first, place / f"{number:05}-{copy}.jpg")
    return folder


def cifar10(args):
    packed = args.pictures / "cifar10" / "cifar-10-binary.tar.gz"
    return packed if _there(packed) else None


def mnist(args):
    """torchvision's root; ours reads it too."""
    packed, raw = args.pictures / "mnist", args.scratch / "MNIST" / "raw"
    if not _there(packed / "train-images-idx3-ubyte.gz"):
        return None
    raw.mkdir(parents=True, exist_ok=True)
    for name in packed.glob("*-ubyte.gz"):
        with gzip.open(name) as source, open(raw / name.stem, "wb") as target:
            shutil.copyfileobj(source, target)
    return args.scratch


def mnist_json(args):
    packed, written = args.pictures / "mnist", args.scratch / "mnist.json.gz"
    if not _there(packed / "train-images-idx3-ubyte.gz"):
        return None
    subprocess.run([sys.executable, TO_JSON, packed, written], check=True)
    return written


def keypoints(args):
    """The table with as many rows as the contest's has, by repeating the ones that are there."""
    packed, plain = args.pictures / "keypoints" / "training.csv.gz", args.scratch / "training.csv"
    if not _there(packed):
        return None
    with gzip.open(packed) as file:
        header, *rows = file.read().splitlines(keepends=True)
    plain.write_bytes(header + b"".join(rows[i % len(rows)] for i in range(FACES)))
    return plain
