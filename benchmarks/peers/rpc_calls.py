"""The peer of ../rpc_calls.cpp: torch.distributed.rpc over TensorPipe.

    torchrun --standalone --nproc_per_node 2 rpc_calls.py [--samples 2000] [--bytes 16777216]
"""

import argparse
import os
import time

import torch
import torch.distributed.rpc as rpc

import workload

IN_FLIGHT, PAGE = 1000, 4096


def nothing():
    return None


def look(values):
    return int(values[::PAGE].sum(dtype=torch.int64))


def give(size, mark):
    return torch.full((size,), mark, dtype=torch.uint8)


def samples_of(samples, timed, before=lambda: None):
    """Microseconds of each, without the first tenth."""
    times = []
    for i in range(-(samples // 10), samples):
        before()
        start = time.perf_counter()
        timed()
        us = (time.perf_counter() - start) * 1e6
        if i >= 0:
            times.append(us)
    return times


def calls_in_flight():
    for call in [rpc.rpc_async("worker1", nothing) for _ in range(IN_FLIGHT)]:
        call.wait()


class Load:
    def __init__(self, size, samples):
        self.values = torch.zeros(size, dtype=torch.uint8)
        self.target = torch.zeros_like(self.values)
        self.samples, self.round, self.wrong = samples, 0, 0

    def rounds(self, timed):
        pages = (self.values.numel() + PAGE - 1) // PAGE

        def before():
            self.round = self.round % 250 + 1
            self.values[::PAGE] = self.round

        def checked():
            self.wrong += timed() != self.round * pages

        return samples_of(self.samples, checked, before)

    def copied(self):
        self.target.copy_(self.values)
        return look(self.target)


def measure(samples, size):
    fewer = max(samples // 40, 10)
    load = Load(size, fewer)
    empty = samples_of(samples, lambda: rpc.rpc_sync("worker1", nothing))
    flight = [us / IN_FLIGHT for us in samples_of(fewer, calls_in_flight)]
    sent = load.rounds(lambda: rpc.rpc_sync("worker1", look, (load.values,)))
    given = load.rounds(lambda: look(rpc.rpc_sync("worker1", give, (size, load.round))))
    copied = load.rounds(load.copied)
    workload.report(
        "rpc_calls",
        bytes=size,
        empty_us=empty,
        flight_us=flight,
        sent_us=sent,
        given_us=given,
        copy_us=copied,
        wrong=load.wrong,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--bytes", type=int, default=16 << 20)
    args = parser.parse_args()
    workload.set_threads()
    rank = int(os.environ["RANK"])
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2)
    if rank == 0:
        measure(args.samples, args.bytes)
    rpc.shutdown()


if __name__ == "__main__":
    main()
