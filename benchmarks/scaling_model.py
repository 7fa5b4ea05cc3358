#!/usr/bin/env python3
"""The model of docs/design/scaling.md beside the points of the newest scaling suite.

    python3 benchmarks/scaling_model.py [RESULTS.json] [--picture docs/design/scaling.svg]

Prints both tables of the page and draws its picture.
"""

import argparse
import json
import re
from pathlib import Path

import plots

HERE = Path(__file__).resolve().parent
GRADIENTS = 11_689_512 * 4  # bytes of ResNet-18's
# Bytes that become ready with the last gradient: the last of `bucket_bytes` of bench_train_step.
LAST_BUCKET = {"resnet18": 11_131_136, "resnet18_sized": 11_131_136}
PAYLOAD = 1448 / 1514  # of what a shaped link carries: the rest is Ethernet's, IP's and TCP's
BYTES_A_MS = {"1gbit": 125e3, "4gbit": 500e3, "10gbit": 1250e3, "25gbit": 3125e3, "100gbit": 12500e3}


def wire_ms(bytes_, hosts, rate):
    """A host sends, and is sent, 2 (H - 1) / H times the data, both ways at once."""
    return 2 * (hosts - 1) / hosts * bytes_ / (BYTES_A_MS[rate] * PAYLOAD)


def exposed_ms(backward, hosts, rate, last_bucket):
    """What backward cannot hide: what is longer than it, and at least the last bucket."""
    return max(wire_ms(GRADIENTS, hosts, rate) - backward, wire_ms(last_bucket, hosts, rate))


def step_ms(base, hosts, rate, last_bucket):
    """A step over hosts from that of as many ranks on one: (its time, backward, exposed)."""
    step, backward, exposed = base
    return step - exposed + max(exposed, exposed_ms(backward, hosts, rate, last_bucket))


def points(data):
    """{(model, rate): {(hosts, ranks): {"": v, "backward": v, "exposed": v}}}"""
    found = {}
    for measure in data["measures"]:
        name = re.fullmatch(r"scaling\.(\w+?)_(\d+gbit)(?:_(\w+))?", measure["name"])
        for variant, values in measure["variants"].items():
            shape = tuple(int(n) for n in re.fullmatch(r"argosy_(\d+)x(\d+)", variant).groups())
            found.setdefault((name[1], name[2]), {}).setdefault(shape, {})[name[3] or ""] = values
    return found


def base_of(shapes, count):
    one = shapes[(1, count)]
    return tuple(one[part]["median"] for part in ("", "backward", "exposed"))


def compare(found, last_bucket):
    """Rows: (label, predicted, measured median, min, max)."""
    rows = []
    for (model, rate), shapes in found.items():
        for (hosts, ranks), values in sorted(shapes.items()):
            if hosts > 1:
                base = base_of(shapes, hosts * ranks)
                predicted = step_ms(base, hosts, rate, last_bucket[model])
                mine = values[""]
                rows.append((f"{model}, {hosts} × {ranks}, {rate}", predicted, mine["median"], mine["min"], mine["max"]))
    return rows


def far(base, last_bucket):
    """{rate: [(hosts, efficiency)]}: the time of one host's step / that over many."""
    hosts = [1, 2, 4, 8, 16, 32, 64, 128]
    return {
        rate: [(n, base[0] / step_ms(base, n, rate, last_bucket) if n > 1 else 1.0) for n in hosts] for rate in BYTES_A_MS
    }


def picture(rows, curves):
    parts = ['<rect width="100%" height="100%" fill="#fff"/>']
    top = max(max(row[1], row[4]) for row in rows)
    scale = (plots.WIDTH - plots.LEFT - plots.RIGHT) / top
    for i, (label, predicted, median, low, high) in enumerate(rows):
        y = 24 + i * plots.ROW
        parts.append(plots.text(plots.LEFT - 8, y + 13, label, "end"))
        width = median * scale
        parts.append(f'<rect x="{plots.LEFT}" y="{y}" width="{width:.1f}" height="16" fill="#4f86c6"/>')
        parts.append(plots.line(plots.LEFT + low * scale, y + 8, plots.LEFT + high * scale, y + 8))
        at = plots.LEFT + predicted * scale
        parts.append(plots.line(at, y - 1, at, y + 17, "#cc3322", 3))
        parts.append(plots.text(plots.LEFT + max(predicted, high) * scale + 8, y + 13, f"{median:.0f} ms", kind="dim"))
    parts.append(plots.text(plots.LEFT, 14, "a step: measured (blue, line: smallest to largest), predicted (red)"))
    above = 24 + len(rows) * plots.ROW + 40
    parts.append(plots.text(80, above - 12, "ResNet-18, predicted: share of one host's speed that each of many keeps at most"))
    hosts = [n for n, _ in next(iter(curves.values()))]
    across = lambda n: 80 + hosts.index(n) / (len(hosts) - 1) * (plots.WIDTH - 260)
    up = lambda share: above + 180 - share * 170
    for share in (0, 0.25, 0.5, 0.75, 1):
        parts.append(plots.line(80, up(share), plots.WIDTH - 180, up(share), "#ddd"))
        parts.append(plots.text(74, up(share) + 4, f"{100 * share:.0f} %", "end", "dim"))
    for n in hosts:
        parts.append(plots.text(across(n), above + 198, f"{n}", "middle", "dim"))
    colors = ["#bb3322", "#cc8844", "#7a9e3f", "#4f86c6", "#1b4f8f"]
    ends = sorted((up(curve[-1][1]), rate, curve, color) for (rate, curve), color in zip(curves.items(), colors))
    previous = -99.0
    for y, rate, curve, color in ends:
        path = " ".join(f"{across(n):.1f},{up(share):.1f}" for n, share in curve)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        previous = max(y, previous + 15)
        parts.append(plots.text(plots.WIDTH - 170, previous + 4, f"{rate}: {100 * curve[-1][1]:.0f} %"))
    style = "<style>text{font:12px system-ui,sans-serif;fill:#222}.dim{fill:#777}</style>"
    drawing = plots.svg(above + 210, [style, *parts])
    return drawing.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="?", type=Path, help="default: the newest of the suite")
    parser.add_argument("--picture", type=Path, default=HERE.parent / "docs" / "design" / "scaling.svg")
    args = parser.parse_args()
    results = args.results or sorted((HERE / "results").glob("*-scaling.json"))[-1]
    found = points(json.loads(results.read_text(encoding="utf-8")))
    rows = compare(found, LAST_BUCKET)
    print("| model, hosts × ranks, link | predicted, ms | measured, ms | measured / predicted |\n|---|---|---|---|")
    for label, predicted, median, low, high in rows:
        print(f"| {label} | {predicted:.0f} | {median:.0f} [{low:.0f} {high:.0f}] | {median / predicted:.2f} |")
    curves = far(base_of(found[("resnet18", "1gbit")], 2), LAST_BUCKET["resnet18"])
    hosts = [n for n, _ in next(iter(curves.values()))]
    print("\n| link | " + " | ".join("1 host" if n == 1 else f"{n} hosts" for n in hosts) + " |\n|---" + "|---" * len(hosts) + "|")
    for rate, curve in curves.items():
        print(f"| {rate} | " + " | ".join(f"{100 * share:.0f} %" for _, share in curve) + " |")
    args.picture.write_text(picture(rows, curves) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
