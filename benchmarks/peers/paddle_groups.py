"""Paddle's all_reduce and DataParallel over its Gloo, or over argosy.paddle where PEER_BACKEND is argosy.

    python -m paddle.distributed.launch --nproc_per_node 2 paddle_groups.py all_reduce [--bytes 4096 1048576 33554432]
    python -m paddle.distributed.launch --nproc_per_node 2 paddle_groups.py resnet18
"""

import argparse
import json
import os
import time

import paddle
import paddle.distributed as dist
from paddle import nn


def report(bench, **fields):
    if dist.get_rank() == 0:
        fields = {"bench": bench, "ranks": dist.get_world_size(), "paddle": paddle.__version__, **fields}
        print(json.dumps(fields), flush=True)


def all_reduce(args):
    """Small ones many times between two barriers, each of a tensor of its own."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for size in args.bytes:
        base = (paddle.arange(size // 4) % 13).astype("float32")
        expected = base * ranks + ranks * (ranks - 1) / 2
        times, wrong = [], 0
        repeats = 40 if size <= 65536 else 8 if size <= 4194304 else 1
        for sample in range(args.warmup + args.samples):
            tensors = [base + rank for _ in range(repeats)]
            dist.barrier()
            start = time.perf_counter()
            for tensor in tensors:
                dist.all_reduce(tensor)
            if sample >= args.warmup:
                times.append((time.perf_counter() - start) * 1e6 / repeats)
            wrong += sum(int((tensor != expected).sum()) for tensor in tensors)
        total = paddle.to_tensor([wrong])
        dist.all_reduce(total)
        report("paddle_all_reduce", bytes=size, type="float", op="sum", samples_us=times, wrong=total.item())


def checksum(net):
    trained = [parameter for parameter in net.parameters() if not parameter.stop_gradient]  # not BatchNorm's statistics
    total = sum(parameter.astype("float64").sum() for parameter in trained)
    gathered = []
    dist.all_gather(gathered, total)
    return total.item(), all(one.item() == total.item() for one in gathered)


def resnet18(args):
    """Steps of DataParallel and Adam, as tutorials write them, on pictures that repeat."""
    paddle.seed(0)
    net = paddle.vision.models.resnet18(num_classes=10)
    model = paddle.DataParallel(net)
    optimizer = paddle.optimizer.Adam(1e-3, parameters=net.parameters())
    paddle.seed(1 + dist.get_rank())
    batches = [(paddle.randn([32, 3, 96, 96]), paddle.randint(0, 10, [32])) for _ in range(8)]
    samples, first = [], None
    dist.barrier()
    for step in range(args.warmup + args.samples):
        images, labels = batches[step % len(batches)]
        start = time.perf_counter()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        if step >= args.warmup:
            samples.append((time.perf_counter() - start) * 1e3)
        first = loss.item() if first is None else first
    total, agree = checksum(net)
    last = loss.item()
    agreed = "yes" if agree else "no"
    report("paddle_resnet18", samples_ms=samples, loss_first=first, loss_last=last, checksum=total, ranks_agree=agreed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["all_reduce", "resnet18"])
    parser.add_argument("--bytes", type=int, nargs="+", default=[4096, 1048576, 33554432])
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--warmup", type=int, default=5)
    args = parser.parse_args()
    paddle.set_device("cpu")
    if os.environ.get("PEER_BACKEND") == "argosy":
        import argosy.paddle

        argosy.paddle.install()
    dist.init_parallel_env()
    {"all_reduce": all_reduce, "resnet18": resnet18}[args.what](args)
    dist.barrier()


if __name__ == "__main__":
    main()
