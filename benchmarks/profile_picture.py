#!/usr/bin/env python3
"""Draws what `bench_train_step --profile` printed, one bar for each file: where a step's time goes.

    python3 benchmarks/profile_picture.py OUT.svg "before=FILE" "after=FILE" …
"""

import re
import sys
from pathlib import Path

import plots

LINE = re.compile(r"\s([\d.]+) ms\s+([\d.]+) %\s+(?:[\d.]+ calls\s+)?(.+)$")
# Operators by what they do; the first that matches counts.
KINDS = [
    ("convolution, backward", "#1b4f8f", ("convolution_backward",)),
    ("convolution", "#4f86c6", ("convolution",)),
    ("batch norm, pooling, relu", "#cc8844", ("batch_norm", "pool", "threshold", "clamp", "Norm", "relu")),
    ("linear, loss", "#7a9e3f", ("mm", "log_softmax", "nll")),
    ("copies, zeros, sums", "#b04a5a", ("copy", "fill", "zero", "add", "mul", "Accumulate", "empty")),
    ("the rest", "#999999", ("",)),
]


def profile(path):
    """{kind: milliseconds of a step}."""
    times = {name: 0.0 for name, _, _ in KINDS}
    total = 0.0
    for row in Path(path).read_text(encoding="utf-8").splitlines():
        if match := re.search(r"\s([\d.]+) ms a step", row):
            total = float(match[1])
        elif match := LINE.search(row):
            kind = next(name for name, _, words in KINDS if any(word in match[3] for word in words))
            times[kind] += float(match[1])
    times[KINDS[-1][0]] += total - sum(times.values())
    return times


def picture(profiles):
    longest = max(sum(times.values()) for times in profiles.values())
    scale = (plots.WIDTH - 120 - 90) / longest
    parts = []
    for i, (label, times) in enumerate(profiles.items()):
        x, y = 120.0, 6 + i * 34
        parts.append(plots.text(112, y + 17, label, "end"))
        for name, color, _ in KINDS:
            width = times[name] * scale
            share = f"{name}: {times[name]:.1f} ms"
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="24" fill="{color}"><title>{share}</title></rect>'
            )
            if width > 34:
                parts.append(plots.text(x + width / 2, y + 17, f"{times[name]:.1f}", "middle", "bar"))
            x += width
        parts.append(plots.text(x + 6, y + 17, f"{sum(times.values()):.1f} ms"))
    top = 6 + len(profiles) * 34 + 8
    for i, (name, color, _) in enumerate(KINDS):
        x, y = 120 + (i % 3) * 240, top + (i // 3) * 20
        parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{color}"/>')
        parts.append(plots.text(x + 18, y + 11, name))
    style = "<style>text{font:12px system-ui,sans-serif;fill:#222}.bar{fill:#fff}</style>"
    drawing = plots.svg(top + 46, [style, '<rect width="100%" height="100%" fill="#fff"/>', *parts])
    return drawing.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)


def main():
    if len(sys.argv) < 3 or any("=" not in word for word in sys.argv[2:]):
        sys.exit(__doc__)
    profiles = {}
    for word in sys.argv[2:]:
        label, path = word.split("=", 1)
        profiles[label] = profile(path)
    Path(sys.argv[1]).write_text(picture(profiles) + "\n", encoding="utf-8")
    print(f"{sys.argv[1]}: " + ", ".join(f"{label} {sum(t.values()):.1f} ms" for label, t in profiles.items()))


if __name__ == "__main__":
    main()
