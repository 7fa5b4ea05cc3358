"""What the programs here share with ../workload.cpp: numbers, models, the line for compare.py."""

import json
import math
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn


def pattern(sizes, seed, device="cpu"):
    """Numbers in [-1, 1], bit for bit those of argosy::bench::pattern."""
    i = torch.arange(math.prod(sizes), dtype=torch.int64, device=device).remainder(2003)
    mixed = (i * i * 7919 + i * 104729 + seed * 1299709).remainder(2003)
    return (mixed.to(torch.float32) / 1001.0 - 1.0).reshape(sizes)


@torch.no_grad()
def fill_weights(module):
    for seed, (name, p) in enumerate(module.named_parameters(), start=1):
        if p.dim() > 1:
            p.copy_(pattern(p.shape, seed) / math.sqrt(p.numel() / p.shape[0]))
        elif name.endswith("bias"):
            p.zero_()


def image_batch(n, seed, channels=1, side=28, device="cpu"):
    labels = (torch.arange(n, dtype=torch.int64, device=device) * 7 + seed).remainder(10)
    classes = pattern((10, channels, side, side), 5000, device)
    images = pattern((n, channels, side, side), seed, device) * 0.5 + classes.index_select(0, labels) * 0.5
    return images, labels


class MnistCnn(nn.Module):
    """conv 5x5 16, bn, relu, pool, conv 5x5 32, bn, relu, pool, linear, as tutorials write it.

    pool_first: pools before relu, in place; the same values and gradients, as ours computes them.
    """

    def __init__(self, pool_first=False):
        super().__init__()
        self.pool_first = pool_first
        self.conv1 = nn.Conv2d(1, 16, 5, padding=2)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 5, padding=2)
        self.bn2 = nn.BatchNorm2d(32)
        self.fc = nn.Linear(7 * 7 * 32, 10)

    def forward(self, x):
        x = self._relu_pool(self.bn1(self.conv1(x)))
        x = self._relu_pool(self.bn2(self.conv2(x)))
        return self.fc(x.flatten(1))

    def _relu_pool(self, x):
        if self.pool_first:
            return nn.functional.max_pool2d(x, 2).relu_()
        return nn.functional.max_pool2d(nn.functional.relu(x), 2)


def resnet18_shapes():
    shapes = []

    def conv_bn(out, inp, side):
        shapes.extend([(out, inp, side, side), (out,), (out,)])

    conv_bn(64, 3, 7)
    inp = 64
    for out in (64, 128, 256, 512):
        for _ in range(2):
            conv_bn(out, inp, 3)
            conv_bn(out, out, 3)
            if inp != out:
                conv_bn(out, inp, 1)
            inp = out
    return shapes + [(1000, 512), (1000,)]


class ResNet18Sized(nn.Module):
    """Parameters with the sizes of ResNet-18's and a dot product each; see ../workload.h."""

    TARGET = 3000.0

    def __init__(self, rank):
        super().__init__()
        self.coefficients = []
        for index, shape in enumerate(resnet18_shapes()):
            n = math.prod(shape)
            setattr(self, f"weight{index}", nn.Parameter(pattern(shape, index) * 0.01))
            self.coefficients.append(pattern((n,), 1000 + 100 * rank + index) / math.sqrt(n))

    def forward(self):
        total = torch.zeros(())
        for index, coefficients in enumerate(self.coefficients):
            weight = getattr(self, f"weight{index}")
            total = total + torch.dot(weight.view(-1), coefficients)
        return (total / self.TARGET - 1).square()


def set_threads():
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


def init(device="cpu"):
    """The job of torchrun's variables; one thread per rank as compare.py sets it."""
    set_threads()
    backend = os.environ.get("PEER_BACKEND", "gloo")  # argosy: PyTorch on our transport
    if backend == "argosy":
        import argosy.torch  # noqa: F401
    dist.init_process_group(backend if device == "cpu" else f"cpu:{backend},cuda:nccl")
    return dist.get_rank()


def turns(args):
    """One, or with --turns one for each line of the input."""
    return sys.stdin if args.turns else [None]


def report(bench, **fields):
    ranks = dist.get_world_size() if dist.is_initialized() else 1
    fields = {"bench": bench, "ranks": ranks, **fields}
    fields["torch"] = torch.__version__
    fields["blas"] = "MKL" if torch.backends.mkl.is_available() else "other"
    fields["threads"] = torch.get_num_threads()
    print(json.dumps(fields), flush=True)


def pss_mb():
    """Memory of this process in MB; what is shared counts in equal parts for each that shares it."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        kib = next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return kib * 1024 / 1e6


def finish():
    """Ends the process at once. PyTorch 2.15 otherwise aborts now and then while it takes a DDP model
    and its Gloo group down ("terminate called without an active exception"), after all is measured."""
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)


class Stopwatch:
    def __init__(self):
        self.start = time.perf_counter()

    def ms(self):
        return (time.perf_counter() - self.start) * 1e3
