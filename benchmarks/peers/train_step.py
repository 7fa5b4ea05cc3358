"""The peer of ../train_step.cpp: PyTorch's DistributedDataParallel and Adam.

    torchrun --standalone --nproc_per_node 2 train_step.py resnet18|resnet18_sized|mnist_cnn [--tuned] [--compile]

Plain: what PyTorch's tutorial writes. --tuned: what its performance guide adds (gradients as bucket
views, the fused Adam, channels_last for the convolutions), and relu on the pooled quarter of the elements, as ours.
"""

import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import workload

BATCH, BATCHES = 100, 8
COLOR_BATCH, SIDE = 32, 96


def checksum(module):
    with torch.no_grad():
        total = torch.zeros(1, dtype=torch.float64)
        for p in module.parameters():
            total += p.to(torch.float64).sum().cpu()
    low, high = total.clone(), total.clone()
    dist.all_reduce(low, op=dist.ReduceOp.MIN)
    dist.all_reduce(high, op=dist.ReduceOp.MAX)
    return total.item(), torch.equal(low, high)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=["resnet18", "resnet18_sized", "mnist_cnn"])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--warmup", type=int, default=15)
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--device", default="cpu", help="cpu, cuda:0, …; not with resnet18_sized")
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    args = parser.parse_args()

    rank = workload.init(args.device)
    if args.model == "resnet18_sized":
        net = workload.ResNet18Sized(rank)
    else:
        seeds = [100 * rank + i for i in range(BATCHES)]
        if args.model == "resnet18":
            import torchvision

            net = torchvision.models.resnet18()
            batches = [workload.image_batch(COLOR_BATCH, seed, 3, SIDE) for seed in seeds]
        else:
            net = workload.MnistCnn(pool_first=args.tuned)
            batches = [workload.image_batch(BATCH, seed) for seed in seeds]
        workload.fill_weights(net)
        device = torch.device(args.device)
        net = net.to(device)
        batches = [(x.to(device), y.to(device)) for x, y in batches]
        if args.tuned:
            net = net.to(memory_format=torch.channels_last)
            batches = [(x.to(memory_format=torch.channels_last), y) for x, y in batches]
    model = DistributedDataParallel(net, gradient_as_bucket_view=args.tuned)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True if args.tuned else None)

    if args.compile:
        model = torch.compile(model)

    samples, losses = [], []
    dist.barrier()
    for step in range(args.warmup + args.steps):
        watch = workload.Stopwatch()
        if args.model == "resnet18_sized":
            loss = model()
        else:
            images, labels = batches[step % BATCHES]
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if args.device != "cpu":
            torch.cuda.synchronize()
        if step >= args.warmup:
            samples.append(watch.ms())
        losses.append(loss.detach())
    memory = workload.pss_mb()
    total, agree = checksum(net)
    if rank == 0:
        workload.report(
            args.model,
            samples_ms=samples,
            loss_first=losses[0].item(),
            loss_last=losses[-1].item(),
            checksum=total,
            pss_mb=memory,
            model_mb=sum(2 * p.nbytes for p in net.parameters()) / 1e6,
            ranks_agree="yes" if agree else "no",
        )
    workload.finish()


if __name__ == "__main__":
    main()
