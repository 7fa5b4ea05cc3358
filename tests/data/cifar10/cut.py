"""Cuts the first images of each batch out of CIFAR-10's two archives, and writes down what is in them.

    python3 cut.py FOLDER [IMAGES]      # FOLDER holds cifar-10-binary.tar.gz and cifar-10-python.tar.gz; needs numpy 1

expected.txt: archive, part, labels, CRC-32 of the pixels. Python's own modules read and write; Argosy does not take part.
"""
import gzip
import io
import pickle
import sys
import tarfile
import zlib

RECORD = 3073
images = int(sys.argv[2]) if len(sys.argv) > 2 else 3


def cut_binary(name, data):
    return data[: RECORD * images] if name.endswith(".bin") else data


def cut_python(name, data):
    value = pickle.loads(data, encoding="bytes")
    if b"data" in value:
        value = {key: item if key == b"batch_label" else item[:images] for key, item in value.items()}
    return pickle.dumps(value, 2)


def samples(name, data):
    if name.endswith(".bin"):
        for at in range(0, len(data), RECORD):
            yield data[at], data[at + 1 : at + RECORD]
    else:
        value = pickle.loads(data, encoding="bytes")
        for label, row in zip(value[b"labels"], value[b"data"]):
            yield label, row.tobytes()


def write(name, members):
    with open(name, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for member, data in members:
                info = tarfile.TarInfo(member)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))


with open("expected.txt", "w") as expected:
    for form, cut in ("binary", cut_binary), ("python", cut_python):
        name = f"cifar-10-{form}.tar.gz"
        with tarfile.open(f"{sys.argv[1]}/{name}") as archive:
            members = [(m.name, cut(m.name, archive.extractfile(m).read())) for m in archive if m.isfile()]
        write(name, members)
        for part in "data_batch", "test_batch":
            found = [s for member, data in members if part in member for s in samples(member, data)]
            labels = " ".join(str(label) for label, _ in found)
            print(name, part, zlib.crc32(b"".join(pixels for _, pixels in found)), labels, sep="\t", file=expected)
