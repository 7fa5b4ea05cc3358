#!/usr/bin/env python3
"""Writes golden/grad_scaler.txt, which grad_scaler_golden_test.cpp reads: 3,000 updates with PyTorch's own
torch.amp.GradScaler on the CPU, with gradients that are not finite now and then.

    python grad_scaler_golden.py > golden/grad_scaler.txt      # with torch installed

Everything but the scaler is exact in f32: rate and momentum are powers of two, clipping is by value. After each
update the scale, the growth tracker, which optimizers were skipped and all weights go into an FNV-1a hash, to the
bit; the file has it after every 100 updates. Lines: "run" and its options; update, hash, scale, tracker, number of
skipped steps so far.
"""
import struct

import torch

STEPS = 3000
SIZES = (7, 3)
RATE, MOMENTUM, LIMIT = 2.0 ** -7, 0.5, 0.25


def weight(k, size):
    return [((i * 37 + k * 11) % 64 - 31) / 32 for i in range(size)]


def gradient(k, size, step, per_mille, factor):
    values = [((i * 7919 + k * 104729 + step * 1299709) % 1009 - 504) / 1024 * factor for i in range(size)]
    draw = (step * 7919 + k * 6007 + step * step % 997 * 31) % 1000
    if draw < per_mille:
        values[step % size] = (float("inf"), float("-inf"), float("nan"))[(step + k) % 3]
    return values


def fnv(hash_, data):
    for byte in data:
        hash_ = ((hash_ ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return hash_


def run(precision, optimizers, per_mille, factor, clip, **options):
    dtype = getattr(torch, precision)
    letter = {"float32": "f", "float64": "d"}[precision]
    scaler = torch.amp.GradScaler("cpu", **options)
    parameters = [torch.tensor(weight(k, n), dtype=dtype, requires_grad=True) for k, n in enumerate(SIZES)]
    groups = [[p] for p in parameters] if optimizers == 2 else [parameters]
    made = [0] * len(groups)
    optims = []
    for number, group in enumerate(groups):
        optim = torch.optim.SGD(group, lr=RATE, momentum=MOMENTUM)
        optim.register_step_post_hook(lambda *_, number=number: made.__setitem__(number, made[number] + 1))
        optims.append(optim)
    print("run", precision, optimizers, per_mille, factor, int(clip), *(options[name] for name in (
        "init_scale", "growth_factor", "backoff_factor", "growth_interval")))
    hash_, skipped = 0xCBF29CE484222325, 0
    for step in range(STEPS):
        loss = sum((p * torch.tensor(gradient(k, p.numel(), step, per_mille, factor), dtype=dtype)).sum()
                   for k, p in enumerate(parameters))
        scaler.scale(loss).backward()
        for number, optim in enumerate(optims):
            if clip:
                scaler.unscale_(optim)
                torch.nn.utils.clip_grad_value_(groups[number], LIMIT)
            before = made[number]
            scaler.step(optim)
            was_skipped = made[number] == before
            skipped += was_skipped
            hash_ = fnv(hash_, bytes([was_skipped]))
        scaler.update()
        for optim in optims:
            optim.zero_grad()
        hash_ = fnv(hash_, struct.pack("<fi", scaler.get_scale(), scaler._get_growth_tracker()))
        for p in parameters:
            hash_ = fnv(hash_, struct.pack(f"<{p.numel()}{letter}", *p.tolist()))
        if (step + 1) % 100 == 0:
            print(step + 1, f"{hash_:016x}", f"{scaler.get_scale():.9g}", scaler._get_growth_tracker(), skipped)


print(f"# PyTorch {torch.__version__}; written by grad_scaler_golden.py")
defaults = dict(init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000)
crooked = dict(init_scale=1000.0, growth_factor=1.37, backoff_factor=0.71, growth_interval=7)
for precision in ("float32", "float64"):
    run(precision, 1, 1, 1.0, False, **defaults)
    run(precision, 1, 60, 1.0, True, **crooked)
run("float32", 1, 0, 1.0, False, **defaults)
run("float32", 2, 40, 1.0, False, **crooked)
# Gradients that overflow by themselves, and a scale that may not grow to infinity.
run("float32", 1, 0, 16.0, False, init_scale=2.0 ** 120, growth_factor=2.0, backoff_factor=0.5, growth_interval=5)
run("float32", 1, 0, 0.25, False, init_scale=2.0 ** 120, growth_factor=2.0, backoff_factor=0.5, growth_interval=5)
