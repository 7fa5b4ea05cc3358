#!/usr/bin/env python3
"""Writes what the real samplers of PaddlePaddle or PyTorch yield, for sampler_golden_test.

One line per (options, epoch, rank); long lists as a digest:

    paddle n=10 k=4 b=2 shuffle=0 drop_last=0 epoch=0 rank=1 len=2 : 2 3 | 9
    torch n=1000 k=3 shuffle=1 seed=7 drop_last=0 epoch=2 rank=0 len=334 : fnv 1a2b3c...

The digest is FNV-1a (64 bit) over each index as 8 little-endian bytes; paddle's adds -1 after each
batch, so that the boundaries count.
"""
import itertools
import sys

SHORT = 48


def fnv1a(values):
    digest = 0xCBF29CE484222325
    for value in values:
        for byte in (value & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little"):
            digest = ((digest ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"fnv {digest:016x}"


def paddle_lines():
    import numpy
    import paddle
    from paddle.io import DistributedBatchSampler

    print(f"# paddlepaddle {paddle.__version__}, numpy {numpy.__version__}")

    def emit(n, k, b, shuffle, drop_last, epochs, ranks):
        samplers = {
            r: DistributedBatchSampler(range(n), b, num_replicas=k, rank=r, shuffle=shuffle, drop_last=drop_last)
            for r in ranks
        }
        for epoch in epochs:
            for rank, sampler in samplers.items():
                if epoch is not None:
                    sampler.set_epoch(epoch)
                shown = sampler.epoch
                batches = list(sampler)
                text = " | ".join(" ".join(map(str, batch)) for batch in batches)
                if sum(map(len, batches)) > SHORT:
                    text = fnv1a(x for batch in batches for x in [*batch, -1])
                print(
                    f"paddle n={n} k={k} b={b} shuffle={shuffle:d} drop_last={drop_last:d} "
                    f"epoch={shown} rank={rank} len={len(sampler)} : {text}".rstrip()
                )

    for n, k, b, drop_last in itertools.product(
        [0, 1, 2, 3, 5, 7, 8, 10, 16, 21], [1, 2, 3, 4, 8], [1, 2, 3, 4, 32], [False, True]
    ):
        emit(n, k, b, False, drop_last, [0], range(k))
        if b in (2, 4):
            # None: no set_epoch, so these are Paddle's own automatic epochs 0, 1, 2.
            emit(n, k, b, True, drop_last, [None, None, None], range(k))
    emit(10, 3, 4, True, False, [1000, 4294967295, 0], range(3))
    for n, k, b in [(1000, 3, 32), (10000, 7, 100), (60000, 2, 100), (60001, 4, 64)]:
        emit(n, k, b, False, False, [0], range(k))
        emit(n, k, b, True, False, [None, None, 17], range(k))
        emit(n, k, b, True, True, [3], range(k))


def torch_lines():
    import torch
    from torch.utils.data.distributed import DistributedSampler

    print(f"# torch {torch.__version__}")

    def emit(n, k, shuffle, seed, drop_last, epochs):
        for epoch in epochs:
            for rank in range(k):
                sampler = DistributedSampler(
                    range(n), num_replicas=k, rank=rank, shuffle=shuffle, seed=seed, drop_last=drop_last
                )
                sampler.set_epoch(epoch)
                indices = list(sampler)
                text = " ".join(map(str, indices)) if len(indices) <= SHORT else fnv1a(indices)
                print(
                    f"torch n={n} k={k} shuffle={shuffle:d} seed={seed} drop_last={drop_last:d} "
                    f"epoch={epoch} rank={rank} len={len(sampler)} : {text}".rstrip()
                )

    for n, k, drop_last in itertools.product(
        [0, 1, 2, 3, 5, 7, 8, 10, 16, 21], [1, 2, 3, 4, 8], [False, True]
    ):
        emit(n, k, False, 0, drop_last, [0])
        for seed in (0, 42):
            emit(n, k, True, seed, drop_last, [0, 1])
    emit(10, 2, True, 4294967295, False, [0, 1, 2])
    emit(10, 2, True, 123456789012345, False, [0, 1])
    for n, k in [(1000, 3), (10000, 7), (60000, 2), (60001, 4)]:
        for drop_last in (False, True):
            emit(n, k, False, 0, drop_last, [0])
            emit(n, k, True, 7, drop_last, [0, 5])


if __name__ == "__main__":
    {"paddle": paddle_lines, "torch": torch_lines}[sys.argv[1]]()
