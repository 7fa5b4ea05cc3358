#!/usr/bin/env python3
"""Writes what Pillow and torchvision make of geometry, for geometry_golden_test: geometry.txt, geometry.bin.

    python3 tests/golden/images/generate_geometry.py
"""
import pathlib

import numpy as np
import PIL
import torch
import torchvision
import torchvision.transforms.functional as F
from PIL import Image
from torchvision.transforms import InterpolationMode

from golden_file import File, picture, versions

MODES = {"nearest": InterpolationMode.NEAREST, "bilinear": InterpolationMode.BILINEAR, "bicubic": InterpolationMode.BICUBIC}


def comma(values):
    return ",".join(map(str, values))


def on_images(operation, pixels, order):
    """operation of a PIL image; f32: of each channel as an image of mode F."""
    if pixels.dtype == np.float32:
        return np.stack([np.asarray(operation(Image.fromarray(pixels[..., c]))) for c in range(pixels.shape[2])], axis=2)
    return np.asarray(operation(Image.fromarray(pixels[..., 0] if order == "gray" else pixels)))


def main():
    file = File(pathlib.Path(__file__).parent, "geometry", versions(PIL, torchvision, np))

    def add(name, source, operation, exact=True, **words):
        file.add(name, source, on_images(operation, picture(*source), source[2]), exact, **words)

    gray, rgb, rgba = (("noise", (37, 53), order, "u8") for order in ("gray", "rgb", "rgba"))
    f32 = ("smooth", (30, 41), "rgb", "f32")
    even = ("smooth", (40, 40), "rgb", "u8")

    for source in (gray, rgb, rgba, even, f32):
        for size in [(20, 20), (21, 30), (60, 20), (20, 61), (70, 71), (37, 53)]:
            add("center_crop", source, lambda im: F.center_crop(im, size), to=f"{size[0]}x{size[1]}")
        for ltrb in [(1, 2, 3, 4), (0, 5, 7, 0), (60, 50, 60, 90), (-3, 4, 5, -6), (-1, -2, -3, -4)]:
            for mode in ("constant", "edge", "reflect", "symmetric"):
                if mode != "constant" and source is f32:
                    continue
                add("pad", source, lambda im: F.pad(im, list(ltrb), 7, mode), padding=comma(ltrb), mode=mode, fill=7)
        for name, method in [("flip_horizontally", Image.Transpose.FLIP_LEFT_RIGHT), ("flip_vertically", Image.Transpose.FLIP_TOP_BOTTOM),
                             ("transpose", Image.Transpose.TRANSPOSE), ("rotate90_1", Image.Transpose.ROTATE_90),
                             ("rotate90_2", Image.Transpose.ROTATE_180), ("rotate90_3", Image.Transpose.ROTATE_270)]:
            add(name, source, lambda im: im.transpose(method))
        # Fill: Pillow takes the color of an RGBA image for one that is weighed by alpha already. We do not.
        fill = 0 if source is rgba else 9
        for interpolation in MODES:
            for degrees in (0, 10, 45, 90, 180, 270, -33.3, 123.456, 359, 720.5):
                for expand in (False, True):
                    add("rotate", source, lambda im: F.rotate(im, degrees, MODES[interpolation], expand, None, fill), degrees=degrees,
                        expand=int(expand), interpolation=interpolation, fill=fill)
            for center in [(0, 0), (10, 20), (52.5, -3)]:
                add("rotate", source, lambda im: F.rotate(im, 30, MODES[interpolation], False, center, fill), degrees=30, expand=0,
                    interpolation=interpolation, fill=fill, center=comma(center))
            for angle, translate, scale, shear, center in [
                (0, (0, 0), 1.0, (0, 0), None), (0, (5, -3), 1.0, (0, 0), None), (0, (0, 0), 1.7, (0, 0), None), (30, (0, 0), 1.0, (0, 0), None),
                (0, (0, 0), 1.0, (15, 0), None), (0, (0, 0), 1.0, (0, -20), None), (-47.5, (7, 2), 0.6, (10, -25), None),
                (100, (-4, 9), 1.3, (-8, 30), (3, 31))]:
                words = {} if center is None else {"center": comma(center)}
                add("affine", source, lambda im: F.affine(im, angle, translate, scale, shear, MODES[interpolation], fill, center), angle=angle,
                    translate=comma(translate), scale=scale, shear=comma(shear), interpolation=interpolation, fill=fill, **words)
            for start, end in [
                ([(0, 0), (52, 0), (52, 36), (0, 36)], [(5, 3), (47, 1), (50, 33), (2, 30)]),
                ([(0, 0), (52, 0), (52, 36), (0, 36)], [(0, 0), (52, 0), (52, 36), (0, 36)]),
                ([(3, 4), (40, 2), (38, 30), (1, 28)], [(0, 0), (52, 0), (52, 36), (0, 36)]),
                ([(0, 0), (39, 0), (39, 29), (0, 29)], [(20, 1), (35, 9), (28, 29), (7, 14)])]:
                flat = lambda points: comma(v for p in points for v in p)
                # Where nothing moves, their least squares leave 1e-17 in the coefficients, and 41 becomes 40.999…: 40.
                exact = start != end or interpolation == "nearest"
                if not exact and source is rgba:
                    continue  # what alpha cost is lost either way
                add("perspective", source, lambda im: F.perspective(im, start, end, MODES[interpolation], fill), exact, start=flat(start),
                    end=flat(end), interpolation=interpolation, fill=fill)
    # Beyond the reach of 16 bits of fraction, and of images that do not overlap themselves.
    add("affine", gray, lambda im: F.affine(im, 20, (40000, 0), 1.0, (0, 0), MODES["nearest"], 5), angle=20, translate="40000,0", scale=1.0,
        shear="0,0", interpolation="nearest", fill=5)
    for source in (rgb, f32):
        tensor = torch.from_numpy(picture(*source)).permute(2, 0, 1)
        for i, j, h, w in [(3, 4, 10, 12), (0, 0, 37, 53), (30, 50, 30, 30)]:
            erased = F.erase(tensor, i, j, h, w, torch.tensor([1.0, 2.0, 3.0])[:, None, None].to(tensor.dtype)).permute(1, 2, 0).numpy()
            file.add("erase", source, erased, box=comma((i, j, h, w)))
    file.close()


if __name__ == "__main__":
    main()
