#!/usr/bin/env python3
"""The tables and the picture of docs/design/scaling.md about meshes: Llama 8B and 70B on 8 to 512 cards, on paper.

    python3 benchmarks/mesh_model.py ARGOSY [--picture docs/design/scaling_mesh.svg]

ARGOSY is the program, whose `estimate` says what a card holds. All else is the formulas below. No card is needed, and
none has confirmed it.
"""

import argparse
import json
import subprocess
from pathlib import Path

import plots

HERE = Path(__file__).resolve().parent
HOST = 8  # cards
# An H100 SXM and its host, in bytes and seconds.
MEMORY = 80e9
OTHERS = 6e9  # of it: CUDA's context, NCCL's buffers, what the allocator cannot use. Assumed.
FLOPS = 989e12 * 0.35  # dense bf16 by the data sheet; the share that torchtitan's compiled 8B has by this count
NVLINK = 360e9  # each way; NCCL's own figure for Hopper, of 450
NETWORK = 50e9 * 0.8  # 400 Gb/s a card, of which 0.8 are assumed to arrive
HOP_INSIDE, HOP_OUTSIDE = 3.4e-6, 14e-6  # latency of a step of NCCL's rings, by NCCL's own table
TOKENS = 8192  # one sequence a card
VOCAB = 128256
LOGITS = 10 * TOKENS * VOCAB  # bytes: 16 bits, f32, logarithms; the estimate has them with 16-bit parameters only
CARDS = (8, 16, 64, 128, 512)


class Llama:
    def __init__(self, name, words, layers, width, hidden):
        self.name, self.words, self.layers, self.width = name, words, layers, width
        keys = 1024
        block = (2 * width + 2 * keys) * width + 3 * width * hidden + 2 * width
        self.table = VOCAB * width
        self.parameters = layers * block + 2 * self.table + width
        self.units = layers + 2

    def flops(self):
        """Of a step of a card: forward, forward again, and backward, which is two."""
        products = 2 * (self.parameters - self.table)  # a token; the first table is only read
        attention = 2 * self.layers * self.width * TOKENS  # half of the square is masked
        return 4 * (products + attention) * TOKENS


MODELS = (
    Llama("8B", "llama3-8b", 32, 4096, 14336),
    Llama("70B", "llama3-8b:layers=80,width=8192,heads=64,kv_heads=8,hidden=28672", 80, 8192, 28672),
)


class Layout:
    """What cards divide, and the bytes that a card sends for a parameter: to gather it in forward and in backward, to
    reduce its gradient, and to hand its new value out. `degree`: cards that divide the values; 0: all."""

    def __init__(self, name, stage, half, degree, forward, backward, reduced, handed_out):
        self.name, self.stage, self.half, self.degree = name, stage, half, degree
        self.forward, self.backward, self.reduced, self.handed_out = forward, backward, reduced, handed_out

    def mesh(self, cards):
        if self.stage == 0:
            return f"dp={cards}"
        return f"dp={cards // self.degree},sharding={self.degree}" if self.replicas(cards) > 1 else f"sharding={cards}"

    def group(self, cards):
        return min(self.degree or cards, cards)

    def replicas(self, cards):
        return cards // self.group(cards)


LAYOUTS = (
    Layout("data parallelism", 0, False, 0, 0, 0, 8, 0),
    Layout("stage 1", 1, False, 0, 0, 0, 8, 4),
    Layout("stage 2", 2, False, 0, 0, 0, 4, 4),
    Layout("stage 3", 3, False, 0, 4, 4, 4, 0),
    Layout("stage 3, 16 bits", 3, True, 0, 2, 2, 2, 0),
    Layout("16 bits, by 32", 3, True, 32, 2, 2, 2, 4 / 32),
    Layout("16 bits, by 8", 3, True, 8, 2, 2, 2, 4 / 8),
)
OF_16_BITS = LAYOUTS[4:]
COLORS = ("#999999", "#bb3322", "#cc8844", "#7a9e3f", "#1b4f8f", "#4f86c6", "#88bbdd")


def memory(argosy, model, layout, cards):
    """Bytes at most in a step of a card."""
    words = ["--sharding_stage", str(layout.stage or 3), "--hosts", "2"]  # cards share no memory, whatever their hosts
    words += ["--amp", "pure_bfloat16" if layout.half else "bfloat16"]
    words += ["--recompute", "--sequence_length", str(TOKENS), "--json"]
    command = [argosy, "estimate", "--model", model.words, "--mesh", layout.mesh(cards), *words]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert found["model_parameters"] == model.parameters
    return found["most"] + (0 if layout.half else LOGITS)


def ring(model, bytes_, cards):
    """Seconds of gathers, or of NCCL's own reductions, of all units."""
    hosts = max(1, cards // HOST)
    rate = NVLINK if hosts == 1 else min(NVLINK, HOST * NETWORK)  # a ring for each network card of a host
    latency = (cards - hosts) * HOP_INSIDE + (hosts * HOP_OUTSIDE if hosts > 1 else 0)
    return bytes_ * (cards - 1) / cards / rate + model.units * latency


def direct(bytes_, cards):
    """Seconds of the exact mode's reductions: each card sends its terms to each by itself."""
    return max(bytes_ * (HOST - 1) / cards / NVLINK, bytes_ * (cards - HOST) / cards / NETWORK)


class Step:
    def __init__(self, model, layout, cards, exact):
        size = model.parameters
        self.computing = model.flops() / FLOPS
        group = layout.group(cards)
        forward = ring(model, layout.forward * size, group)
        backward = ring(model, layout.backward * size, group)
        reducing = direct(layout.reduced * size, cards) if exact else ring(model, layout.reduced * size, cards)
        replicas = layout.replicas(cards)
        tail = layout.handed_out * size * (replicas - 1) / replicas / NETWORK  # each part by its own network card
        self.moving = forward + backward + reducing + tail
        hidden_by_forward, hidden_by_backward = self.computing / 4, self.computing * 3 / 4
        self.time = max(forward, hidden_by_forward) + max(backward + reducing, hidden_by_backward) + tail
        self.least = self.moving / self.computing * TOKENS  # tokens that take as long to compute with


def fits(bytes_):
    return bytes_ <= MEMORY - OTHERS


def print_memory(held):
    print("| GB of a card | " + " | ".join(f"{m.name}, {n}" for m in MODELS for n in CARDS) + " |")
    print("|---" * (1 + len(MODELS) * len(CARDS)) + "|")
    for layout in LAYOUTS:
        cells = [held[model.name, layout.name, cards] for model in MODELS for cards in CARDS]
        print(f"| {layout.name} | " + " | ".join(f"{b / 1e9:.0f}" if fits(b) else f"*{b / 1e9:.0f}*" for b in cells) + " |")


def print_bytes():
    print("\n| GB that a card sends | for P parameters | 8B | 70B |\n|---|---|---|---|")
    for layout in LAYOUTS:
        each = layout.forward + layout.backward + layout.reduced + layout.handed_out
        print(f"| {layout.name} | {each:g} P | " + " | ".join(f"{each * m.parameters / 1e9:.0f}" for m in MODELS) + " |")


def print_steps(held):
    print("\n| model, cards | mesh | step, s | of it computing | moving, s: native, exact | fewest tokens: native, exact |")
    print("|---|---|---|---|---|---|")
    for model in MODELS:
        for cards in CARDS:
            for layout in OF_16_BITS:
                divided_so = layout.degree == 0 or layout.replicas(cards) > 1
                if divided_so and fits(held[model.name, layout.name, cards]):
                    native, exact = (Step(model, layout, cards, how) for how in (False, True))
                    print(
                        f"| {model.name}, {cards} | {layout.mesh(cards)} | {native.time:.2f} | "
                        f"{100 * native.computing / native.time:.0f} % | {native.moving:.2f}, {exact.moving:.2f} | "
                        f"{round(native.least, -2):,.0f}, {round(exact.least, -2):,.0f} |"
                    )


def print_fewest(argosy):
    print()
    for model in MODELS:
        for layout in OF_16_BITS:
            step = max(layout.degree, HOST)
            fewest = next((n for n in range(step, 513, step) if fits(memory(argosy, model, layout, n))), None)
            print(f"{model.name}, {layout.name}: fits on {fewest} cards or more")


def panel(model, held, left):
    """Memory over cards."""
    top, low, wide, most = 44, 274, 270, 140e9
    across = lambda cards: left + CARDS.index(cards) / (len(CARDS) - 1) * wide
    up = lambda bytes_: low - min(bytes_, most) / most * (low - top)
    parts = [plots.text(left, 22, f"{model.name}: GB of a card, over the number of cards")]
    for gigabytes in (0, 40, 80, 120):
        parts.append(plots.line(left, up(gigabytes * 1e9), left + wide, up(gigabytes * 1e9), "#ddd"))
        parts.append(plots.text(left - 6, up(gigabytes * 1e9) + 4, gigabytes, "end", "dim"))
    parts += [plots.text(across(cards), low + 18, cards, "middle", "dim") for cards in CARDS]
    parts.append(plots.line(left, up(MEMORY - OTHERS), left + wide, up(MEMORY - OTHERS), "#cc3322", 2, "6 3"))
    drawn = [layout for layout in LAYOUTS if held[model.name, layout.name, CARDS[-1]] <= most]
    previous = -99.0
    for layout in sorted(drawn, key=lambda each: -held[model.name, each.name, CARDS[-1]]):
        curve = [(cards, held[model.name, layout.name, cards]) for cards in CARDS]
        points = " ".join(f"{across(cards):.1f},{up(bytes_):.1f}" for cards, bytes_ in curve if bytes_ <= most)
        color = COLORS[LAYOUTS.index(layout)]
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        previous = max(up(curve[-1][1]), previous + 15)
        parts.append(plots.text(left + wide + 8, previous + 4, layout.name))
        parts.append(plots.line(left + wide, up(curve[-1][1]), left + wide + 6, previous, color))
    return parts


def picture(held):
    parts = ['<rect width="100%" height="100%" fill="#fff"/>', *panel(MODELS[0], held, 40), *panel(MODELS[1], held, 470)]
    style = "<style>text{font:12px system-ui,sans-serif;fill:#222}.dim{fill:#777}</style>"
    return plots.svg(300, [style, *parts]).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("argosy")
    parser.add_argument("--picture", type=Path, default=HERE.parent / "docs" / "design" / "scaling_mesh.svg")
    args = parser.parse_args()
    held = {(m.name, l.name, n): memory(args.argosy, m, l, n) for m in MODELS for l in LAYOUTS for n in CARDS}
    print_memory(held)
    print_bytes()
    print_steps(held)
    print_fewest(args.argosy)
    args.picture.write_text(picture(held) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
