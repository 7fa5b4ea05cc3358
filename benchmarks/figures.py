#!/usr/bin/env python3
"""The pictures of docs/benchmarks.md, from committed results: docs/benchmarks/*.svg.

    python3 benchmarks/figures.py            writes them
    python3 benchmarks/figures.py --check    fails if a committed one is another

Narrow enough for a phone. Bars are medians; the thin lines on them reach from the smallest to the largest run.
"""

import json
import math
import sys
from pathlib import Path

import plots

HERE = Path(__file__).resolve().parent
PICTURES = HERE.parent / "docs" / "benchmarks"
WIDTH, ROW, RIGHT = 440, 38, 96
OURS, THEIRS, NOBODYS = "#2266bb", "#cc8844", "#999999"

# Picture: the file of results, and for each measure its title and the variants that are shown.
BARS = {
    "steps": (
        "2026-11-22-1234-ddp",
        {
            "ddp.resnet18": "A step of ResNet-18, 32 images a rank",
            "ddp.mnist_cnn": "A step of MnistCnn, 100 images a rank",
        },
        {
            "argosy": "Argosy",
            "torch_default": "PyTorch's DDP as it comes",
            "torch_channels_last": "PyTorch's DDP with its fastest options",
            "torch_tcmalloc": "the same with tcmalloc",
            "floor": "no averaging at all: independent processes",
        },
    ),
    "sharding": (
        "2026-11-29-1437-parallel",
        {"parallel.gpt_2_ranks_batch_1": "A step of a GPT of 25 M parameters, two ranks"},
        {
            "argosy": "Argosy, divided (stage 3)",
            "ddp": "Argosy, data parallelism",
            "torch_full": "PyTorch's FSDP2",
            "torch_ddp": "PyTorch's DDP",
        },
    ),
    "epoch": (
        "2026-11-22-1150-epoch",
        {"epoch.train_and_evaluate": "Fashion-MNIST, an epoch and its evaluation"},
        {
            "argosy": "Argosy",
            "torch_tuned": "PyTorch, tuned",
            "torch_default": "PyTorch as its tutorials write it",
            "paddle": "Paddle",
        },
    ),
    "input": (
        "2026-11-22-1909-input",
        {"input.flowers": "A JPEG of Flowers-102 into a batch, one core"},
        {
            "argosy": "Argosy",
            "torch_v2": "torchvision on tensors",
            "dali": "DALI on the CPU",
            "torch_pillow": "torchvision on Pillow's pictures",
            "jpeg_full": "libjpeg-turbo decodes it whole, and no more",
        },
    ),
    "launcher": (
        "2026-11-22-1102-launch",
        {
            "launch.start": "Two ranks that do nothing, from start to end",
            "launch.killed": "From a rank's death to the reported end",
            "launch.peak": "Memory of the launcher",
        },
        {"argosy": "Argosy", "torchrun": "torchrun", "paddle": "Paddle's launcher"},
    ),
}
UNITS = {"us/image": "µs"}


def color(variant):
    if variant in ("floor", "jpeg_full"):
        return NOBODYS
    return OURS if variant == "argosy" or variant == "ddp" else THEIRS


def measures_of(name):
    data = json.loads((HERE / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return {m["name"]: m for m in data["measures"]}


def drawing(height, parts):
    style = (
        "<style>text{font:13px system-ui,sans-serif;fill:#222}.title{font-weight:600}.dim{fill:#666}"
        ".small{font-size:11px}</style>"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">{style}'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def bars(file, titles, variants):
    """Each bar below its name, so that both have the whole width."""
    found, parts, y = measures_of(file), [], 4
    for measure, title in titles.items():
        values = found[measure]["variants"]
        unit = UNITS.get(found[measure]["unit"], found[measure]["unit"])
        scale = (WIDTH - RIGHT - 10) / max(values[v]["max"] for v in variants if v in values)
        parts.append(plots.text(8, y + 14, title, kind="title"))
        y += 22
        for variant, words in variants.items():
            if variant not in values:
                continue
            value = values[variant]
            parts.append(plots.text(8, y + 14, words))
            width = max(1.0, value["median"] * scale)
            parts.append(f'<rect x="8" y="{y + 19}" width="{width:.1f}" height="12" fill="{color(variant)}"/>')
            parts.append(plots.line(8 + value["min"] * scale, y + 25, 8 + value["max"] * scale, y + 25))
            number = f"{plots.number(value['median'])} {unit}"
            parts.append(plots.text(14 + value["max"] * scale, y + 29, number, kind="dim"))
            y += ROW
        y += 10
    parts.append(plots.text(8, y + 8, f"benchmarks/results/{file}", kind="dim small"))
    return drawing(y + 16, parts)


def all_reduce(file="2026-11-22-1057-collectives"):
    """GB/s over the size of a tensor, both logarithmic."""
    names = {
        "argosy": ("Argosy, any tensor", OURS),
        "argosy_in_place": ("Argosy, a bucket in shared memory", "#66aadd"),
        "argosy_gloo": ("Argosy over Gloo", "#55aa77"),
        "torch_gloo": ("PyTorch over Gloo", THEIRS),
        "copy": ("a plain copy", NOBODYS),
    }
    sizes = {"4KB": 4096, "64KB": 65536, "1MB": 1 << 20, "4MB": 4 << 20, "32MB": 32 << 20}
    found = measures_of(file)
    rates = {
        variant: [
            bytes_ / found[f"collectives.{size}"]["variants"][variant]["median"] / 1e3 for size, bytes_ in sizes.items()
        ]
        for variant in names
    }
    low, high = -3, math.ceil(math.log10(max(max(r) for r in rates.values())))
    across = lambda i: 50 + i * (WIDTH - 80) / (len(sizes) - 1)
    up = lambda rate: 300 - (math.log10(rate) - low) / (high - low) * 260
    parts = [plots.text(8, 18, "All-reduce of f32 between two ranks, GB/s", kind="title")]
    for exponent in range(low, high + 1):
        parts.append(plots.line(50, up(10**exponent), WIDTH - 30, up(10**exponent), "#ddd"))
        parts.append(plots.text(44, up(10**exponent) + 4, f"{10.0**exponent:g}", "end", "dim"))
    for i, size in enumerate(sizes):
        parts.append(plots.text(across(i), 320, size, "middle", "dim"))
    for row, (variant, (words, stroke)) in enumerate(names.items()):
        path = " ".join(f"{across(i):.1f},{up(rate):.1f}" for i, rate in enumerate(rates[variant]))
        dash = ' stroke-dasharray="5 4"' if variant == "copy" else ""
        parts.append(f'<polyline points="{path}" fill="none" stroke="{stroke}" stroke-width="2.5"{dash}/>')
        y = 344 + row * 19
        parts.append(plots.line(50, y - 4, 74, y - 4, stroke, 3))
        parts.append(plots.text(82, y, words))
    y = 344 + len(names) * 19
    parts.append(plots.text(8, y + 8, f"benchmarks/results/{file}", kind="dim small"))
    return drawing(y + 16, parts)


def main():
    pictures = {name: bars(*what) for name, what in BARS.items()} | {"all_reduce": all_reduce()}
    stale = []
    for name, picture in sorted(pictures.items()):
        path = PICTURES / f"{name}.svg"
        if sys.argv[1:] == ["--check"]:
            if not path.exists() or path.read_text(encoding="utf-8") != picture:
                stale.append(path.name)
        else:
            PICTURES.mkdir(exist_ok=True)
            path.write_text(picture, encoding="utf-8")
    if stale:
        sys.exit(f"docs/benchmarks: other pictures than the results give: {' '.join(stale)}; run benchmarks/figures.py")


if __name__ == "__main__":
    main()
