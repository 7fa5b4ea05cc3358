#!/usr/bin/env python3
"""hash_of_dcp.py FOLDER: the hash of a folder of PyTorch's distributed checkpoint, as `argosy checkpoint hash` has it
for other weights. Nothing of PyTorch or Argosy reads it: only Python's own library does."""
import hashlib
import io
import math
import pickle
import struct
import sys
import zipfile
from pathlib import Path

TYPES = {"float32": ("F32", 4), "float64": ("F64", 8), "bfloat16": ("BF16", 2), "int64": ("I64", 8)}


class Objects(pickle.Unpickler):
    """PyTorch's objects as tuples of what they are made of."""

    def find_class(self, module, name):
        if name == "Size":
            return tuple
        return TYPES.get(name, lambda *fields: fields)

    def persistent_load(self, pid):
        return pid


def elements(file_of_one):
    """The shape and the bytes of a tensor that torch.save() would write."""
    with zipfile.ZipFile(io.BytesIO(file_of_one)) as archive:
        folder = archive.namelist()[0].split("/")[0]
        storage, offset, shape, strides, *_ = Objects(archive.open(f"{folder}/data.pkl")).load()
        row_major = tuple(math.prod(shape[dim + 1 :]) for dim in range(len(shape)))
        assert offset == 0 and strides == row_major, (shape, strides)
        return shape, archive.read(f"{folder}/data/{storage[2]}")


def main(folder):
    with open(folder / ".metadata", "rb") as file:
        tensors, _, places = Objects(file).load()
    digest = hashlib.sha256()
    for name in sorted(tensors, key=str.encode):
        (kind,), shape, _ = tensors[name]
        word, size = kind
        file, offset, length = places[name, (0,) * len(shape), 0]
        saved_shape, data = elements((folder / file).read_bytes()[offset : offset + length])
        assert saved_shape == shape and len(data) == size * math.prod(shape), name
        digest.update(struct.pack("<Q", len(name.encode())) + name.encode() + word.encode() + b"\0")
        digest.update(struct.pack(f"<{len(shape) + 1}Q", len(shape), *shape) + data)
    print(digest.hexdigest())


main(Path(sys.argv[1]))
