#!/usr/bin/env python3
"""Writes what Pillow and torch make of Image.resize, for resize_golden_test: resize.txt, resize.bin.

    python3 tests/golden/images/generate_resize.py
"""
import pathlib

import numpy as np
import PIL
import torch
from PIL import Image

from golden_file import File, picture, versions

FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "box": Image.Resampling.BOX,
    "hamming": Image.Resampling.HAMMING,
    "lanczos": Image.Resampling.LANCZOS,
}


def pillow(pixels, order, to, interpolation, box):
    """f32: each channel as an image of mode F."""
    if pixels.dtype == np.float32:
        planes = [Image.fromarray(pixels[..., c]).resize(to[::-1], FILTERS[interpolation], box) for c in range(pixels.shape[2])]
        return np.stack([np.asarray(p) for p in planes], axis=2)
    image = Image.fromarray(pixels[..., 0] if order == "gray" else pixels)
    return np.asarray(image.resize(to[::-1], FILTERS[interpolation], box))


def plain(pixels, to, interpolation):
    """torch without antialiasing; u8 in torch's own arithmetic of u8, as torchvision's v2 transforms take it."""
    x = torch.from_numpy(pixels).permute(2, 0, 1)[None]
    y = torch.nn.functional.interpolate(x, size=to, mode=interpolation, align_corners=False, antialias=False)
    return y[0].permute(1, 2, 0).numpy()


def main():
    file = File(pathlib.Path(__file__).parent, "resize", versions(PIL, torch, np))

    def exact(pattern, size, order, kind, to, interpolation, box=None):
        result = pillow(picture(pattern, size, order, kind), order, to, interpolation, box)
        words = {} if box is None else {"box": ",".join(map(str, box))}
        file.add("resize", (pattern, size, order, kind), result, to=f"{to[0]}x{to[1]}", interpolation=interpolation, **words)

    for interpolation in FILTERS:
        for order in ("gray", "rgb", "rgba"):
            for size, to in [((37, 53), (24, 24)), ((53, 37), (80, 91)), ((64, 64), (64, 20)), ((40, 40), (13, 40)),
                             ((120, 90), (7, 5)), ((5, 3), (33, 70)), ((1, 1), (4, 4)), ((31, 33), (31, 33))]:
                exact("noise", size, order, "u8", to, interpolation)
        exact("smooth", (190, 190), "rgb", "u8", (112, 112), interpolation)
        exact("smooth", (97, 211), "bgr", "u8", (48, 67), interpolation)
        exact("smooth", (37, 53), "rgb", "f32", (24, 70), interpolation)
        exact("noise", (60, 50), "gray", "f32", (21, 17), interpolation)
        for box in [(3.25, 1.5, 40.75, 33.125), (0.0, 0.0, 26.5, 37.0), (10.1, 20.3, 10.9, 20.7), (0.0, 0.0, 53.0, 36.9)]:
            exact("noise", (37, 53), "rgb", "u8", (24, 24), interpolation, box)
            exact("noise", (37, 53), "rgba", "u8", (24, 53), interpolation, box)
        exact("smooth", (37, 53), "rgb", "f32", (24, 24), interpolation, (3.25, 1.5, 40.75, 33.125))
    # Large factors: more taps than any special case of ours.
    for interpolation in ("bilinear", "lanczos"):
        exact("noise", (300, 400), "rgb", "u8", (3, 4), interpolation)
        exact("noise", (400, 90), "gray", "u8", (2, 61), interpolation)
    for interpolation in ("bilinear", "bicubic"):
        for size, order, kind, to in [((37, 53), "rgb", "u8", (24, 24)), ((20, 30), "gray", "u8", (50, 31)), ((60, 50), "rgb", "u8", (11, 13)),
                                      ((2, 3), "rgb", "u8", (7, 5)), ((37, 53), "rgb", "f32", (24, 20))]:
            source = ("noise", size, order, kind)
            file.add("plain_resize", source, plain(picture(*source), to, interpolation), exact=False, to=f"{to[0]}x{to[1]}",
                     interpolation=interpolation)
    file.close()


if __name__ == "__main__":
    main()
