#!/usr/bin/env python3
"""Writes what Pillow, torchvision and Paddle make of colors and filters, for color_golden_test and filter_golden_test:
color.txt, color.bin.

    python3 tests/golden/images/generate_color.py
"""
import pathlib

import numpy as np
import paddle
import PIL
import torch
import torchvision
import torchvision.transforms.functional as F
from paddle.vision.transforms import functional_pil
from PIL import Image

from golden_file import File, picture, versions


def every_color():
    """All steps of 15 of red, green and blue: 18 × 18 × 18 colors, as one picture. Its formula is in golden_images.h."""
    steps = np.arange(0, 256, 15, dtype=np.uint8)
    return np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(18, 324, 3)


def main():
    file = File(pathlib.Path(__file__).parent, "color", versions(PIL, torchvision, paddle, np))
    gray, rgb, rgba, smooth = ("noise", (37, 53), "gray", "u8"), ("noise", (37, 53), "rgb", "u8"), ("noise", (20, 30), "rgba", "u8"), (
        "smooth", (60, 50), "rgb", "u8")
    f32 = ("noise", (20, 30), "rgb", "f32")
    cube = ("cube", (18, 324), "rgb", "u8")

    def pixels_of(source):
        return every_color() if source[0] == "cube" else picture(*source)

    def images(name, sources, operation, **words):
        for source in sources:
            pixels = pixels_of(source)
            result = np.asarray(operation(Image.fromarray(pixels[..., 0] if source[2] == "gray" else pixels)))
            file.add(name, source, result, **words)

    def tensors(name, sources, operation, **words):
        for source in sources:
            tensor = torch.from_numpy(pixels_of(source)).permute(2, 0, 1)
            file.add(name, source, operation(tensor).permute(1, 2, 0).numpy(), exact=False, **words)

    for factor in (0, 0.2, 0.5, 0.9, 1, 1.1, 1.7, 3):
        for name in ("adjust_brightness", "adjust_contrast", "adjust_saturation", "adjust_sharpness"):
            operation = lambda im: getattr(F, name)(im, factor)
            images(name, (gray, rgb, rgba, smooth, cube), operation, factor=factor)
            if factor in (0.5, 1.7):
                tensors(name, (f32,), operation, factor=factor)
    for name, their in [("adjust_brightness", functional_pil.adjust_brightness), ("adjust_contrast", functional_pil.adjust_contrast),
                        ("adjust_saturation", functional_pil.adjust_saturation)]:
        images(name, (rgb,), lambda im: their(im, 1.3), factor=1.3)
    for shift in (-0.5, -0.3, -0.01, 0, 0.07, 0.25, 0.5):
        images("adjust_hue", (gray, rgb, smooth, cube), lambda im: F.adjust_hue(im, shift), shift=shift)
        if shift in (-0.3, 0, 0.25):
            tensors("adjust_hue", (f32,), lambda t: F.adjust_hue(t, shift), shift=shift)
    images("adjust_hue", (rgb,), lambda im: functional_pil.adjust_hue(im, -0.2), shift=-0.2)
    for gamma, gain in [(0, 1), (0.5, 1), (1, 1), (2.2, 1), (1.5, 1.4)]:
        images("adjust_gamma", (gray, rgb), lambda im: F.adjust_gamma(im, gamma, gain), gamma=gamma, gain=gain)
    tensors("adjust_gamma", (f32,), lambda t: F.adjust_gamma(t, 2.2, 1.1), gamma=2.2, gain=1.1)
    images("invert", (gray, rgb), F.invert)
    tensors("invert", (f32,), F.invert)
    for bits in (1, 3, 8):
        images("posterize", (gray, rgb), lambda im: F.posterize(im, bits), bits=bits)
    for threshold in (0, 100, 128.5, 256):
        images("solarize", (gray, rgb), lambda im: F.solarize(im, threshold), threshold=threshold)
    tensors("solarize", (f32,), lambda t: F.solarize(t, 0.4), threshold=0.4)
    dull = ("dull", (37, 53), "rgb", "u8")  # noise / 4 + 40
    one = ("one", (5, 4), "rgb", "u8")  # all 7
    more = {"dull": picture(*rgb) // 4 + 40, "one": np.full((5, 4, 3), 7, np.uint8)}
    for source in (gray, rgb, smooth, dull, one):
        pixels = more.get(source[0])
        pixels = picture(*source) if pixels is None else pixels
        image = Image.fromarray(pixels[..., 0] if source[2] == "gray" else pixels)
        file.add("autocontrast", source, np.asarray(F.autocontrast(image)))
        file.add("equalize", source, np.asarray(F.equalize(image)))
    tensors("autocontrast", (f32,), F.autocontrast)
    for channels in (1, 3):
        images("to_grayscale", (gray, rgb, cube), lambda im: F.to_grayscale(im, channels), channels=channels)
        images("to_grayscale", (rgb,), lambda im: functional_pil.to_grayscale(im, channels), channels=channels)
    tensors("to_grayscale", (f32,), F.rgb_to_grayscale, channels=1)
    for order, mode in [("gray", "L"), ("rgb", "RGB"), ("rgba", "RGBA")]:
        images("convert", (gray, rgb, rgba), lambda im: im.convert(mode), to=order)
    tensors("to_f32", (rgb,), lambda t: F.convert_image_dtype(t, torch.float32))
    tensors("to_u8", (f32,), lambda t: F.convert_image_dtype(t * 1.0, torch.uint8))
    for kernel, sigma in [((3, 3), None), ((5, 9), (1.5, 0.7)), ((23, 21), (4.0, 3.0)), ((1, 1), None), ((7, 1), (2.0, 2.0))]:
        words = {"kernel": ",".join(map(str, kernel)), "sigma": ",".join(map(str, sigma)) if sigma else "0,0"}
        tensors("gaussian_blur", (gray, rgb, smooth, rgba, f32), lambda t: F.gaussian_blur(t, kernel, sigma), **words)
    file.close()


if __name__ == "__main__":
    main()
