#!/usr/bin/env python3
"""Goldens for argosy/vision/transforms, made by torchvision, Pillow and Paddle.

    python3 tests/golden/transforms/generate.py draws > tests/golden/transforms/draws.txt     # needs torchvision
    python3 tests/golden/transforms/generate.py pixels > tests/golden/transforms/pixels.txt   # and Pillow
    python3 tests/golden/transforms/generate.py paddle > tests/golden/transforms/paddle.txt   # needs paddlepaddle

draws: torchvision's own get_params() of each random transform, fed with the numbers of our streams (Random
below transcribes argosy/data/random.cpp). pixels, paddle: deterministic forms on the picture of picture().
Lines: name, arguments, "=", results; f32 values as the hexadecimal digits of their bits.
"""
import math
import struct
import sys

MASK = (1 << 64) - 1


def mix(a, b=0):
    z = (a * 0x9E3779B97F4A7C15 + b + 0x632BE59BD9B4E019) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Random:
    """xoshiro256**, seeded as argosy::data::Random."""

    def __init__(self, seed, epoch, index):
        key = mix(mix(mix(seed), epoch), index)
        self.s = [mix(key, i) for i in range(4)]

    def bits(self):
        s = self.s
        x = (s[1] * 5) & MASK
        result = (((x << 7) | (x >> 57)) & MASK) * 9 & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = ((s[3] << 45) | (s[3] >> 19)) & MASK
        return result

    def uniform(self, low=0.0, high=1.0):
        return low + (high - low) * ((self.bits() >> 11) * 2.0**-53)

    def integer(self, low, high):
        span = high - low + 1
        limit = MASK - (MASK % span + 1) % span
        draw = self.bits()
        while draw > limit:
            draw = self.bits()
        return low + draw % span


class Number(float):
    """What stands for a tensor of one element."""

    def item(self):
        return float(self)

    def uniform_(self, low, high):
        return Number(Torch.random.uniform(low, high))


class Torch:
    """What torchvision's get_params() uses of torch, in double and with our numbers."""

    random = None
    float32 = None

    @staticmethod
    def empty(*_, **__):
        return Number(0)

    @staticmethod
    def rand(_):
        return Number(Torch.random.uniform())

    @staticmethod
    def randint(low, high, size):
        return Number(Torch.random.integer(low, high - 1))

    @staticmethod
    def randperm(n):
        order = list(range(n))
        for i in range(n - 1, 0, -1):
            j = Torch.random.integer(0, i)
            order[i], order[j] = order[j], order[i]
        return order

    @staticmethod
    def tensor(values):
        class Values(list):
            def __getitem__(self, key):
                return list.__getitem__(self, key) if isinstance(key, int) else self

        return Values(values)

    @staticmethod
    def log(values):
        return [math.log(v) for v in values]

    @staticmethod
    def exp(value):
        return Number(math.exp(value))


class Shape:
    """An image of which only the size matters."""

    def __init__(self, height, width):
        self.shape = (3, height, width)


SIZES = [(375, 500), (500, 375), (32, 32), (7, 900), (900, 7), (1, 1), (33, 40)]


def numbers(*values):
    return " ".join(str(v) if isinstance(v, int) else f"{v:.17g}" for v in values)


def draws():
    import torchvision
    from torchvision.transforms import transforms as T

    print(f"# torchvision {torchvision.__version__}; name seed height width = draws")
    T.torch = Torch
    T.F.get_dimensions = lambda image: list(image.shape)
    for height, width in SIZES:
        image = Shape(height, width)
        for seed in range(12):
            start = f"{seed} {height} {width} ="

            def fresh():
                Torch.random = Random(seed, 0, 0)

            fresh()
            print("RandomResizedCrop", start, numbers(*T.RandomResizedCrop.get_params(image, (0.08, 1.0), (3 / 4, 4 / 3))))
            fresh()
            box = T.RandomErasing.get_params(image, (0.02, 0.33), (0.3, 3.3), [0.0])
            print("RandomErasing", start, "none" if box[4] is image else numbers(*box[:4]))
            fresh()
            corners = T.RandomPerspective.get_params(width, height, 0.5)[1]
            print("RandomPerspective", start, numbers(*[v for corner in corners for v in corner]))
            fresh()
            angle, shift, scale, shear = T.RandomAffine.get_params(
                [-30.0, 30.0], [0.1, 0.3], [0.5, 1.5], [-10.0, 10.0, -5.0, 5.0], [width, height])
            print("RandomAffine", start, numbers(angle, *shift, scale, *shear))
            if height >= 32 and width >= 32:
                fresh()
                print("RandomCrop", start, numbers(*T.RandomCrop.get_params(image, (32, 30))))
    # Shapes that few draws fit: what the tenth of them does, and what follows it.
    for seed in range(80):
        Torch.random = Random(seed, 0, 0)
        print("RandomResizedCrop", seed, "20 110 =",
              numbers(*T.RandomResizedCrop.get_params(Shape(20, 110), (0.08, 1.0), (3 / 4, 4 / 3))))
        Torch.random = Random(seed, 0, 0)
        narrow = Shape(3, 90)
        box = T.RandomErasing.get_params(narrow, (0.02, 0.33), (0.3, 3.3), [0.0])
        print("RandomErasing", seed, "3 90 =", "none" if box[4] is narrow else numbers(*box[:4]))
    for seed in range(12):
        Torch.random = Random(seed, 0, 0)
        order, b, c, s, h = T.ColorJitter.get_params([0.8, 1.2], None, [0.9, 1.1], [-0.1, 0.1])
        print("ColorJitter", seed, "0 0 =", numbers(*order, b, s, h))


def value(y, x, c):
    """The picture's bytes: smooth in places, noisy in others, the same in the C++ test."""
    return (x * 9 + y * 5 + c * 40 + (x * y * (c + 3) * 37 % 101 if x > 6 else 0)) % 256


HEIGHT, WIDTH = 11, 14


def picture(channels):
    import numpy

    return numpy.array(
        [[[value(y, x, c) for c in range(channels)] for x in range(WIDTH)] for y in range(HEIGHT)], dtype=numpy.uint8)


def show(name, array):
    """Values in memory's order."""
    import numpy

    array = numpy.ascontiguousarray(array)
    if array.dtype == numpy.uint8:
        print(name, "=", array.tobytes().hex())
    else:
        print(name, "=", struct.pack(f">{array.size}f", *array.astype(numpy.float32).ravel().tolist()).hex())


def pixels():
    import PIL
    import torch
    import torchvision
    from PIL import Image
    from torchvision.transforms import functional as F
    from torchvision.transforms import _functional_tensor as FT
    import numpy

    print(f"# torchvision {torchvision.__version__}, Pillow {PIL.__version__}, {HEIGHT} x {WIDTH}; name channels = hex")
    for channels in (1, 3):
        array = picture(channels)
        image = Image.fromarray(array[:, :, 0] if channels == 1 else array)
        chw = F.to_tensor(image)
        show(f"to_tensor {channels}", chw.numpy())
        mean, std = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]) if channels == 3 else ([0.1307], [0.3081])
        show(f"normalize {channels}", F.normalize(chw, mean, std).numpy())
        for name, made in {
            "invert": F.invert(image), "posterize_3": F.posterize(image, 3), "solarize_99": F.solarize(image, 99),
            "autocontrast": F.autocontrast(image), "equalize": F.equalize(image),
            "sharpness_0": F.adjust_sharpness(image, 0.0), "sharpness_0.3": F.adjust_sharpness(image, 0.3),
            "sharpness_2.5": F.adjust_sharpness(image, 2.5)}.items():
            show(f"{name} {channels}", numpy.array(made))
        half = chw * 0.5 + 0.2
        for name, made in {
            "f32_invert": FT.invert(half), "f32_solarize_0.4": FT.solarize(half, 0.4),
            "f32_autocontrast": FT.autocontrast(half), "f32_sharpness_2.5": FT.adjust_sharpness(half, 2.5)}.items():
            show(f"{name} {channels}", made.numpy())
        erased = F.erase(chw, 2, 3, 4, 5, torch.tensor([0.25] * channels)[:, None, None])
        show(f"erase {channels}", erased.numpy())


def paddle():
    import paddle as pd
    from paddle.vision.transforms import functional as F
    from paddle.vision.transforms import Transpose
    from PIL import Image

    print(f"# paddlepaddle {pd.__version__}, {HEIGHT} x {WIDTH}; name channels = hex")
    for channels in (1, 3):
        array = picture(channels)
        image = Image.fromarray(array[:, :, 0] if channels == 1 else array)
        show(f"to_tensor {channels}", F.to_tensor(image).numpy())
        show(f"transpose {channels}", Transpose()(array))
        show(f"normalize_hwc {channels}", F.normalize(array, [127.5] * channels, [100.0] * channels, "HWC"))


if __name__ == "__main__":
    {"draws": draws, "pixels": pixels, "paddle": paddle}[sys.argv[1]]()
