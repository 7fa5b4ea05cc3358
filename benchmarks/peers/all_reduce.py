"""The peer of ../all_reduce.cpp: torch.distributed.all_reduce over Gloo.

    torchrun --standalone --nproc_per_node 2 all_reduce.py [--bytes 4096 1048576 33554432]
"""

import argparse

import torch
import torch.distributed as dist

import workload


def operations(size, ranks):
    """As in ../all_reduce.cpp: small ones many times, where repeated sums stay exact."""
    if ranks not in (2, 4):
        return 1
    return 40 if size <= 65536 else 8 if size <= 4194304 else 1


def measure(size, samples, warmup):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    repeats = operations(size, ranks)
    base = torch.arange(size // 4, dtype=torch.float32).remainder(13)
    expected = (base * ranks + ranks * (ranks - 1) / 2.0) * ranks ** (repeats - 1)
    tensor = torch.empty_like(base)
    times, wrong = [], 0
    for sample in range(warmup + samples):
        tensor.copy_(base).add_(rank)
        dist.barrier()
        watch = workload.Stopwatch()
        for _ in range(repeats):
            dist.all_reduce(tensor)
        us = watch.ms() * 1e3 / repeats
        if sample >= warmup:
            times.append(us)
        wrong += tensor.ne(expected).sum().item()
    return times, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, nargs="+", default=[4096, 1048576, 33554432])
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--warmup", type=int, default=5)
    args = parser.parse_args()
    rank = workload.init()
    for size in args.bytes:
        times, wrong = measure(size, args.samples, args.warmup)
        total = torch.tensor([wrong], dtype=torch.int64)
        dist.all_reduce(total)
        if rank == 0:
            workload.report(
                "all_reduce",
                bytes=size,
                type="float",
                op="sum",
                samples_us=times,
                wrong=total.item(),
            )
    workload.finish()


if __name__ == "__main__":
    main()
