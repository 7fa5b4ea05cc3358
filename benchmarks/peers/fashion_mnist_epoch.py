"""The peer of ../fashion_mnist_epoch.cpp: one epoch in PyTorch, as its users write it.

    torchrun --standalone --nproc_per_node 2 fashion_mnist_epoch.py --root FOLDER [--tuned]

Plain: torchvision's FashionMNIST with ToTensor, DataLoader and DistributedSampler as in PyTorch's
tutorials. --tuned: images as one tensor in memory and sliced in whole batches, channels_last,
pooling before relu, gradients as bucket views, the fused Adam. FOLDER is torchvision's root (FashionMNIST/raw/…,
unpacked; compare.py makes one). Evaluation: each rank takes every n-th test image, so that each
counts once (DistributedSampler would pad).
"""

import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset
from torch.utils.data.distributed import DistributedSampler
from torchvision import transforms
from torchvision.datasets import FashionMNIST

import workload


def plain_loaders(args, rank, world):
    transform = transforms.ToTensor()
    train = FashionMNIST(args.root, train=True, transform=transform)
    test = FashionMNIST(args.root, train=False, transform=transform)
    sampler = DistributedSampler(train, shuffle=True)
    part = Subset(test, range(rank, len(test), world))
    return (
        DataLoader(train, batch_size=args.batch_size, sampler=sampler),
        DataLoader(part, batch_size=500),
    )


class WholeBatches:
    """Batches cut out of tensors in memory, without a tensor per sample."""

    def __init__(self, data, order, batch_size):
        self.images = data.data.unsqueeze(1)
        self.labels = data.targets
        self.batches = torch.as_tensor(list(order)).split(batch_size)

    def __iter__(self):
        for batch in self.batches:
            images = self.images[batch].to(torch.float32).div_(255)
            yield images.to(memory_format=torch.channels_last), self.labels[batch]


def tuned_loaders(args, rank, world):
    train = FashionMNIST(args.root, train=True)
    test = FashionMNIST(args.root, train=False)
    sampler = DistributedSampler(train, shuffle=True)
    return (
        WholeBatches(train, sampler, args.batch_size),
        WholeBatches(test, range(rank, len(test), world), 500),
    )


def evaluate(model, loader):
    model.eval()
    right, count = 0, 0
    with torch.no_grad():
        for images, labels in loader:
            right += (model(images).argmax(1) == labels).sum().item()
            count += labels.numel()
    totals = torch.tensor([right, count], dtype=torch.int64)
    dist.all_reduce(totals)
    return totals[0].item() / totals[1].item(), totals[1].item()


def deliver(loader, rank):
    dist.barrier()
    watch = workload.Stopwatch()
    images = torch.tensor([sum(batch.shape[0] for batch, _ in loader)], dtype=torch.int64)
    ms = watch.ms()
    dist.all_reduce(images)
    if rank == 0:
        workload.report("input", samples_ms=[ms], images=images.item())
    workload.finish()


def main():
    process = workload.Stopwatch()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", required=True)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--input_only", action="store_true", help="deliver the batches and do not train")
    args = parser.parse_args()

    rank = workload.init()
    torch.manual_seed(1)
    watch = workload.Stopwatch()
    make_loaders = tuned_loaders if args.tuned else plain_loaders
    loader, test_loader = make_loaders(args, rank, dist.get_world_size())
    load_ms = watch.ms()
    if args.input_only:
        deliver(loader, rank)
        return
    net = workload.MnistCnn(pool_first=args.tuned)
    if args.tuned:
        net = net.to(memory_format=torch.channels_last)
    model = DistributedDataParallel(net, gradient_as_bucket_view=args.tuned)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True if args.tuned else None)

    dist.barrier()
    watch = workload.Stopwatch()
    total, samples = 0.0, 0
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total += loss.item() * labels.numel()
        samples += labels.numel()
    sums = torch.tensor([total, samples], dtype=torch.float64)
    dist.all_reduce(sums)
    train_ms = watch.ms()
    watch = workload.Stopwatch()
    accuracy, evaluated = evaluate(net, test_loader)
    evaluate_ms = watch.ms()
    if rank == 0:
        workload.report(
            "fashion_mnist",
            load_ms=load_ms,
            train_ms=train_ms,
            evaluate_ms=evaluate_ms,
            samples_ms=[train_ms + evaluate_ms],
            process_ms=process.ms(),
            loss=(sums[0] / sums[1]).item(),
            accuracy=accuracy,
            evaluated=evaluated,
        )
    workload.finish()


if __name__ == "__main__":
    main()
