#!/usr/bin/env python3
"""One page of pictures of the newest results: results/index.html, with nothing to load.

    python3 benchmarks/plots.py [FOLDER]

Bars are medians, the thin lines on them reach from the smallest to the largest run.
"""

import html
import json
import math
import re
import sys
from pathlib import Path

from suites import SUITES

WIDTH, ROW, LEFT, RIGHT = 860, 22, 250, 90
COLORS = {"argosy": "#2266bb", "argosy_in_place": "#66aadd", "floor": "#999999", "copy": "#999999"}
OTHER = "#cc8844"
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 900px; margin: 2em auto; padding: 0 1em; color: #222 }
h2 { margin-top: 2em } .note { color: #666; font-size: 13px } svg { display: block; margin: .6em 0 1.2em }
svg text { font: 12px system-ui, sans-serif; fill: #222 } svg .dim { fill: #777 }
"""


def newest(folder):
    """{suite: its newest results}: of the newest run of the whole suite, each measure replaced by that of a later run
    of a part (--only) with the same variants or more. Runs on another engine are a suite of their own. Five
    repetitions or more."""
    found = {}
    for path in sorted(Path(folder).glob("*.json")):
        suite = re.sub(r"^\d{4}-\d{2}-\d{2}-\d{4}-", "", path.stem)
        data = json.loads(path.read_text(encoding="utf-8"))
        if suite not in SUITES or data["repetitions"] < 5:
            continue
        if data.get("engine", "debian") != "debian":
            suite += f", engine: {data['engine']}"
        data["files"] = [path.name]
        if suite in found and data.get("only"):
            merge(found[suite], data)
        elif suite in found or not data.get("only") or "engine" in suite:
            found[suite] = data
    return found


def merge(whole, part):
    places = {m["name"]: i for i, m in enumerate(whole["measures"])}
    for measure in part["measures"]:
        place = places.get(measure["name"])
        if place is None:
            continue
        if set(whole["measures"][place]["variants"]) <= set(measure["variants"]):
            whole["measures"][place] = measure | {"file": part["files"][0]}
            whole["files"] += [f for f in part["files"] if f not in whole["files"]]


def text(x, y, words, anchor="start", kind=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{html.escape(str(words))}</text>'


def line(x1, y1, x2, y2, color="#222", width=1.0, dash=""):
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" '
        f'stroke-width="{width}" stroke-dasharray="{dash}"/>'
    )


def svg(height, parts):
    return f'<svg width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">{"".join(parts)}</svg>'


def number(value):
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def bars(measure):
    """The variants of one measure."""
    variants = measure["variants"]
    scale = (WIDTH - LEFT - RIGHT) / (max(v["max"] for v in variants.values()) or 1)
    parts = []
    for i, (name, v) in enumerate(variants.items()):
        y = 4 + i * ROW
        parts.append(text(LEFT - 8, y + 13, name, "end"))
        color = COLORS.get(name, OTHER)
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{v["median"] * scale:.1f}" height="16" fill="{color}"/>')
        parts.append(line(LEFT + v["min"] * scale, y + 8, LEFT + v["max"] * scale, y + 8))
        end = LEFT + v["max"] * scale + 6
        parts.append(text(end, y + 13, f"{number(v['median'])} {measure['unit']}", kind="dim"))
    return svg(8 + len(variants) * ROW, parts)


def ratios(measures):
    """All ratios with their targets; left of the line at 1 is faster."""
    rows = [r for m in measures for r in m["ratios"]]
    if not rows:
        return ""
    top = min(2.0, max(1.2, *(r["max"] for r in rows)))
    place = lambda value: LEFT + min(value, top) / top * (WIDTH - LEFT - RIGHT)
    height = 22 + len(rows) * ROW
    parts = [line(place(1), 0, place(1), height - 18, "#888", 1, "3 3"), text(place(1), height - 4, "1", "middle", "dim")]
    for i, r in enumerate(rows):
        y = 4 + i * ROW
        met = r["target"] is None or r["median"] <= r["target"]
        color = "#228844" if met else "#bb3322"
        parts.append(text(LEFT - 8, y + 13, r["name"].split(".", 1)[1], "end"))
        parts.append(line(place(r["min"]), y + 8, place(r["max"]), y + 8, color, 2))
        parts.append(f'<circle cx="{place(r["median"]):.1f}" cy="{y + 8}" r="5" fill="{color}"/>')
        if r["target"] is not None:
            parts.append(line(place(r["target"]), y + 1, place(r["target"]), y + 15, "#222", 2))
        parts.append(text(WIDTH - RIGHT + 8, y + 13, f"{r['median']:.3f}", kind="dim"))
    return svg(height, parts)


def bandwidth(measures, ranks):
    """Bytes a second over message size, both on logarithmic axes, with the copy's limit drawn in."""
    sizes = {"K": 1 << 10, "M": 1 << 20}
    curves = {}
    for m in measures:
        size = re.fullmatch(r"(\d+)([KM])B", m["name"].split(".")[-1])
        for name, v in m["variants"].items() if size else ():
            bytes_ = int(size[1]) * sizes[size[2]]
            curves.setdefault(name, []).append((bytes_, bytes_ / v["median"] / 1e3))
    points = [p for curve in curves.values() for p in curve]
    if len(points) < 4:
        return ""
    low, high = (f(math.log10(y) for _, y in points) for f in (min, max))
    left, right = (f(math.log2(x) for x, _ in points) for f in (min, max))
    across = lambda x: 60 + (math.log2(x) - left) / (right - left) * (WIDTH - 260)
    up = lambda y: 270 - (math.log10(y) - low) / (high - low) * 240
    parts = []
    for exponent in range(math.ceil(low), math.floor(high) + 1):
        parts.append(line(60, up(10**exponent), WIDTH - 200, up(10**exponent), "#ddd"))
        parts.append(text(54, up(10**exponent) + 4, f"{10**exponent:g}", "end", "dim"))
    for x in sorted({x for x, _ in points}):
        parts.append(text(across(x), 290, f"{x >> 20} MiB" if x >= 1 << 20 else f"{x >> 10} KiB", "middle", "dim"))
    ends = []
    for name, curve in curves.items():
        curve.sort()
        color = COLORS.get(name, OTHER if "torch" in name else "#55aa77")
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in curve)
        dash = "5 4" if name == "copy" else ""
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2" stroke-dasharray="{dash}"/>'
        )
        ends.append([up(curve[-1][1]), name, color])
    previous = -99.0
    for y, name, color in sorted(ends):
        previous = max(y, previous + 15)  # names do not cover each other
        parts.append(f'<circle cx="{WIDTH - 192}" cy="{previous:.1f}" r="4" fill="{color}"/>')
        parts.append(text(WIDTH - 182, previous + 4, name))
    note = f"GB/s of an all-reduce of f32 between {ranks} ranks (bytes of the tensor / time); copy: memcpy by all ranks at once"
    return f'<p class="note">{note}</p>' + svg(300, parts)


def scaling(measures):
    """Time of a step over the number of ranks, of whoever was measured with several."""
    curves = {}
    for m in measures:
        found = re.fullmatch(r"resnet18(?:_(\d+)_ranks?)?", m["name"].split(".")[-1])
        for name, v in m["variants"].items() if found else ():
            if name in ("argosy", "torch_default"):
                curves.setdefault(name, []).append((int(found[1] or 2), v))
    if max((len(c) for c in curves.values()), default=0) < 2:
        return ""
    ranks = sorted({n for c in curves.values() for n, _ in c})
    top = max(v["max"] for c in curves.values() for _, v in c)
    across = lambda n: 80 + ranks.index(n) / max(1, len(ranks) - 1) * (WIDTH - 300)
    up = lambda ms: 230 - ms / top * 210
    parts = [line(60, 230, WIDTH - 200, 230, "#888")]
    parts += [text(across(n), 248, f"{n} rank{'s' if n > 1 else ''}", "middle", "dim") for n in ranks]
    for name, curve in curves.items():
        curve.sort(key=lambda point: point[0])
        color = COLORS.get(name, OTHER)
        path = " ".join(f"{across(n):.1f},{up(v['median']):.1f}" for n, v in curve)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        for n, v in curve:
            parts.append(line(across(n), up(v["min"]), across(n), up(v["max"]), color, 2))
            parts.append(text(across(n) + 6, up(v["median"]) - 6, number(v["median"]), kind="dim"))
        parts.append(text(WIDTH - 190, up(curve[-1][1]["median"]) + 4, name))
    return '<p class="note">ms of a step of ResNet-18 over the number of ranks, on the cores of this machine</p>' + svg(256, parts)


def section(suite, data):
    machine = data["machine"]
    parts = [f"<h2>{html.escape(suite)}</h2>"]
    about = f"{data['date']}, {data['revision']}, {machine['cpu']}, {machine['cores']} cores; {data['repetitions']} repetitions"
    links = ", ".join(f'<a href="{html.escape(file)}">{html.escape(file)}</a>' for file in data["files"])
    parts.append(f'<p class="note">{html.escape(about)}; {links}</p>')
    measures = [m for m in data["measures"] if m["variants"]]
    picture = ratios(measures)
    if picture:
        note = "Ours / the other's time: left of the dotted line is faster. Black mark: the target; green: reached."
        parts += [f'<p class="note">{note}</p>', picture]
    parts.append(scaling(measures))
    if any(re.search(r"\d[KM]B$", m["name"]) for m in measures):
        parts.append(bandwidth(measures, data["ranks"]))
    for m in measures:
        later = f' <span class="note">{html.escape(m["file"])}</span>' if "file" in m else ""
        parts += [f"<h3>{html.escape(m['name'])}{later}</h3>", bars(m)]
    return "\n".join(parts)


def page(results):
    intro = (
        "The newest run of each suite, and of its parts where they ran again since. Absolute times are of a machine that is shared with others and differs from day to "
        "day; what is claimed are the ratios, whose two sides ran in turns. What was measured: benchmarks/README.md."
    )
    body = "\n".join(section(suite, data) for suite, data in sorted(results.items()))
    head = f'<meta charset="utf-8"><title>Argosy: benchmarks</title><style>{STYLE}</style>'
    return f"<!doctype html><html lang=en><head>{head}</head><body><h1>Benchmarks</h1><p>{intro}</p>{body}</body></html>\n"


def write(folder):
    """Writes the page and gives its path."""
    path = Path(folder) / "index.html"
    path.write_text(page(newest(folder)), encoding="utf-8")
    return path


if __name__ == "__main__":
    print(write(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent / "results"))
