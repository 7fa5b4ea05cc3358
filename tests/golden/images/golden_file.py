"""The form of the golden files of image operations, shared by the generators beside it.

Each line is a call and what came out; the picture that went in is a formula:

    resize picture=noise size=37x53 order=rgb type=u8 to=24x24 interpolation=bilinear : 24x24 fnv 1a2b…
    rotate …                                                                          : 24x24 raw 1536

fnv: FNV-1a (64 bit) over the bytes of the result (f32 in little endian), rows from the top, for results
that must be equal bit for bit. raw: the offset of those bytes in the .bin file of the same name, for
results that are compared within a bound.
"""
import sys

import numpy as np


def noise(height, width, channels):
    """Each byte on its own: nothing is smooth."""
    x = np.arange(height * width * channels, dtype=np.uint32) * np.uint32(2654435761) + np.uint32(12345)
    x ^= x >> np.uint32(15)
    x *= np.uint32(2246822519)
    x ^= x >> np.uint32(13)
    return (x & np.uint32(255)).astype(np.uint8).reshape(height, width, channels)


def smooth(height, width, channels):
    """Slopes with a few edges, the channels apart: like a photograph."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(channels), indexing="ij")
    return ((y * 3 + x * 2 + c * 40 + y * x // 16) % 256).astype(np.uint8)


CHANNELS = {"gray": 1, "rgb": 3, "bgr": 3, "rgba": 4}


def picture(pattern, size, order, kind):
    pixels = {"noise": noise, "smooth": smooth}[pattern](*size, CHANNELS[order])
    return pixels if kind == "u8" else pixels.astype(np.float32) / np.float32(255)


def fnv1a(data):
    digest = 0xCBF29CE484222325
    for byte in data:
        digest = ((digest ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{digest:016x}"


class File:
    """NAME.txt and, where a result is kept whole, NAME.bin."""

    def __init__(self, folder, name, versions):
        self.text = open(folder / f"{name}.txt", "w")
        self.path = folder / f"{name}.bin"
        self.raw = bytearray()
        print(f"# {versions}", file=self.text)

    def add(self, operation, source, result, exact=True, **values):
        """source: (pattern, (height, width), order, type); result: an array of height × width [× channels]."""
        pattern, size, order, kind = source
        result = np.ascontiguousarray(result)
        shape = "x".join(map(str, result.shape[:2]))
        data = result.tobytes()
        if exact:
            out = f"fnv {fnv1a(data)}"
        else:
            out = f"raw {len(self.raw)}"
            self.raw += data
        words = " ".join(f"{k}={v}" for k, v in values.items())
        print(
            f"{operation} picture={pattern} size={size[0]}x{size[1]} order={order} type={kind} {words} : {shape} {out}",
            file=self.text,
        )

    def close(self):
        self.text.close()
        if self.raw:
            self.path.write_bytes(self.raw)


def versions(*modules):
    return f"Python {sys.version.split()[0]}, " + ", ".join(f"{m.__name__} {m.__version__}" for m in modules)
