"""The peer of ../optimizer_step.cpp: PyTorch's Adam over the same parameters and gradients.

    python optimizer_step.py [--samples 40] [--warmup 5] [--fused]

As it comes it is the foreach or the plain loop, whichever PyTorch chooses; --fused: its fused kernel.
"""

import argparse

import torch

import workload


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--fused", action="store_true")
    args = parser.parse_args()

    workload.set_threads()
    net = workload.ResNet18Sized(0)
    for i, p in enumerate(net.parameters()):
        p.grad = workload.pattern(p.shape, 3000 + i) * 0.01
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True if args.fused else None)
    samples = []
    for i in range(args.warmup + args.samples):
        watch = workload.Stopwatch()
        optimizer.step()
        if i >= args.warmup:
            samples.append(watch.ms())
    squares = sum(p.detach().to(torch.float64).square().sum().item() for p in net.parameters())
    workload.report("optimizer_step", samples_ms=samples, checksum=squares)


if __name__ == "__main__":
    main()
