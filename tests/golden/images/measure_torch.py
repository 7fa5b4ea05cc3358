#!/usr/bin/env python3
"""How far torchvision's tensors are from Pillow (whose bits Argosy gives), on photographs: the figures of
docs/reference/transforms_exactness.md. With --dump FOLDER it writes the photographs for measure_opencv.cpp.

    python3 tests/golden/images/measure_torch.py FOLDER_OF_JPEGS [--dump FOLDER] [--photos 30]
"""
import argparse
import pathlib

import numpy as np
import torch
import torchvision.transforms.functional as F
import torchvision.transforms.v2.functional as F2
from PIL import Image
from torchvision.transforms import InterpolationMode as Mode


class Gap:
    """Of the values of all photographs: how many differ, by how much."""

    def __init__(self):
        self.count = self.differ = self.total = self.most = 0
        self.steps = np.zeros(256, np.int64)

    def add(self, ours, theirs):
        gap = np.abs(ours.astype(int) - theirs.astype(int))
        self.steps += np.bincount(gap.ravel(), minlength=256)

    def __str__(self):
        count = self.steps.sum()
        mean = (self.steps * np.arange(256)).sum() / count
        above = 1 - self.steps[:2].sum() / count
        return f"{100 * (1 - self.steps[0] / count):6.2f} % differ, {100 * above:6.2f} % by more than 1, mean {mean:.4f}, most {np.nonzero(self.steps)[0].max()}"


START, END = [(0, 0), (499, 0), (499, 499), (0, 499)], [(30, 20), (470, 5), (480, 460), (10, 440)]


def operations():
    """name: (of a PIL image, of a tensor)."""
    size = [224, 224]
    both = lambda f: (f, f)
    return {
        "resize bilinear, antialias (v1)": both(lambda x: F.resize(x, size, Mode.BILINEAR, antialias=True)),
        "resize bilinear, antialias (v2)": (lambda x: F.resize(x, size, Mode.BILINEAR), lambda x: F2.resize(x, size, Mode.BILINEAR, antialias=True)),
        "resize bicubic, antialias (v2)": (lambda x: F.resize(x, size, Mode.BICUBIC), lambda x: F2.resize(x, size, Mode.BICUBIC, antialias=True)),
        "resize nearest": both(lambda x: F.resize(x, size, Mode.NEAREST)),
        "resize nearest-exact": both(lambda x: F.resize(x, size, Mode.NEAREST_EXACT)),
        "rotate 30, nearest": both(lambda x: F.rotate(x, 30, Mode.NEAREST, fill=[0])),
        "rotate 30, bilinear": both(lambda x: F.rotate(x, 30, Mode.BILINEAR, fill=[0])),
        "affine, nearest": both(lambda x: F.affine(x, 20, [10, -5], 0.9, [10.0, 5.0], Mode.NEAREST, fill=[0])),
        "affine, bilinear": both(lambda x: F.affine(x, 20, [10, -5], 0.9, [10.0, 5.0], Mode.BILINEAR, fill=[0])),
        "perspective, bilinear": both(lambda x: F.perspective(x, START, END, Mode.BILINEAR, fill=[0])),
        "adjust_brightness 1.3": both(lambda x: F.adjust_brightness(x, 1.3)),
        "adjust_contrast 1.3": both(lambda x: F.adjust_contrast(x, 1.3)),
        "adjust_saturation 1.3": both(lambda x: F.adjust_saturation(x, 1.3)),
        "adjust_hue 0.1": both(lambda x: F.adjust_hue(x, 0.1)),
        "adjust_gamma 2.2": both(lambda x: F.adjust_gamma(x, 2.2)),
        "to_grayscale": (lambda x: F.to_grayscale(x, 3), lambda x: F.rgb_to_grayscale(x, 3)),
        "adjust_sharpness 2": both(lambda x: F.adjust_sharpness(x, 2)),
        "autocontrast": both(F.autocontrast),
        "equalize": both(F.equalize),
        "posterize 3": both(lambda x: F.posterize(x, 3)),
        "solarize 128": both(lambda x: F.solarize(x, 128)),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--dump", type=pathlib.Path)
    parser.add_argument("--photos", type=int, default=30)
    args = parser.parse_args()
    gaps = {name: Gap() for name in operations()}
    for i, path in enumerate(sorted(args.folder.glob("*.jpg"))[: args.photos]):
        image = Image.open(path).convert("RGB").crop((0, 0, 500, 500))
        pixels = np.array(image)
        if args.dump:
            args.dump.mkdir(exist_ok=True)
            (args.dump / f"{i:03}.rgb").write_bytes(pixels.tobytes())  # 500 × 500 × 3
        tensor = torch.from_numpy(pixels).permute(2, 0, 1)
        for name, (pil, of_tensor) in operations().items():
            gaps[name].add(np.asarray(pil(image)), of_tensor(tensor).permute(1, 2, 0).numpy())
    for name, gap in gaps.items():
        print(f"{name:34} {gap}")


if __name__ == "__main__":
    main()
