#!/usr/bin/env python3
"""What image_resize_bench measures, done by Pillow, torchvision's tensors and torch: microseconds, one thread, median and least.

    taskset -c 0 build/release/bin/image_resize_bench --benchmark_repetitions=5
    taskset -c 0 python3 tests/golden/images/time_pillow.py
"""
import statistics
import time

import numpy as np
import torch
import torchvision.transforms.v2.functional as F
from PIL import Image
from torchvision.transforms import InterpolationMode as Mode


def microseconds(call, repetitions=100):
    times = []
    for _ in range(repetitions + 5):
        begin = time.perf_counter()
        call()
        times.append(1e6 * (time.perf_counter() - begin))
    return f"median {statistics.median(times[5:]):7.0f}  least {min(times[5:]):7.0f}"


def main():
    torch.set_num_threads(1)
    random = np.random.default_rng(0)
    for side in (128, 300, 380, 500, 1000):
        pixels = random.integers(0, 256, (side, side, 3), dtype=np.uint8)
        image = Image.fromarray(pixels)
        planes = torch.from_numpy(pixels).permute(2, 0, 1).contiguous()
        channels_last = torch.from_numpy(pixels).permute(2, 0, 1)[None]
        for name, by, mode in [("bilinear", Image.Resampling.BILINEAR, Mode.BILINEAR), ("bicubic", Image.Resampling.BICUBIC, Mode.BICUBIC)]:
            print(f"{side} {name:8} Pillow            {microseconds(lambda: image.resize((224, 224), by))}")
            print(f"{side} {name:8} torchvision v2    {microseconds(lambda: F.resize(planes, [224, 224], mode, antialias=True))}")
            print(f"{side} {name:8} the same, HWC     {microseconds(lambda: F.resize(channels_last, [224, 224], mode, antialias=True))}")


if __name__ == "__main__":
    main()
