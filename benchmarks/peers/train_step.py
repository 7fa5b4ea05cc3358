"""The peer of ../train_step.cpp: PyTorch's DistributedDataParallel and Adam, or SGD.

    torchrun --standalone --nproc_per_node 2 train_step.py resnet18|resnet50|resnet18_sized|mnist_cnn [--tuned]
        [--compile] [--optimizer sgd|none] [--amp bf16] [--alone] [--turns] [--pictures FOLDER --num_workers 16]

Plain: what PyTorch's tutorial writes. --tuned: what its performance guide adds (gradients as bucket views, the fused
Adam, channels_last for the convolutions, cuDNN's choice by trial, pinned batches), and relu on the pooled quarter of
the elements, as ours. --optimizer none: forward, backward and what is summed there; one update after the last step,
which no clock sees, shows what it has summed. --alone: each rank is a group of its own, and all have the first one's
data, so nothing goes between them: the floor under what sums add. --pictures: see ../train_step.cpp. --turns: warm-up,
steps and a line of figures for each line of the input, so that one process, which needs long to start, is measured in
turns with others.
"""

import argparse
import itertools

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


def picture_batches(args):
    """Without end, on the device."""
    from torchvision import datasets

    import picture_input

    device = torch.device(args.device)
    crop = picture_input.transforms.RandomResizedCrop(224)
    crop_v2 = picture_input.v2.RandomResizedCrop(224, antialias=True)
    loading = {"loader": picture_input.read_tensor} if args.tuned else {}
    transform = picture_input.chain(crop, crop_v2, picture_input.IMAGENET, args.tuned)
    loader = torch.utils.data.DataLoader(
        datasets.ImageFolder(args.pictures, transform=transform, **loading),
        batch_size=args.batch,
        shuffle=True,
        drop_last=True,
        num_workers=args.num_workers,
        persistent_workers=args.num_workers > 0,
        pin_memory=args.tuned and args.device != "cpu",
    )
    while True:
        for images, labels in loader:
            images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            yield (images.to(memory_format=torch.channels_last) if args.tuned else images), labels


def ready_batches(args, rank):
    """Those of ../train_step.cpp in turns, without end."""
    seeds = [100 * rank + i for i in range(BATCHES)]
    device = torch.device(args.device)
    if args.model == "mnist_cnn":
        batches = [workload.image_batch(args.batch, seed) for seed in seeds]
    else:
        batches = [workload.image_batch(args.batch, seed, 3, args.side, device) for seed in seeds]
    batches = [(x.to(device), y.to(device)) for x, y in batches]
    if args.tuned:
        batches = [(x.to(memory_format=torch.channels_last), y) for x, y in batches]
    return itertools.cycle(batches)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=["resnet18", "resnet50", "resnet18_sized", "mnist_cnn"])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--warmup", type=int, default=15)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--side", type=int, default=SIDE, help="of a color image")
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--device", default="cpu", help="cpu, cuda:0, …; not with resnet18_sized")
    parser.add_argument("--amp", choices=["bf16"])
    parser.add_argument("--optimizer", choices=["adam", "sgd", "none"], default="adam")
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--turns", action="store_true")
    parser.add_argument("--pictures")
    parser.add_argument("--num_workers", type=int, default=0)
    args = parser.parse_args()
    args.batch = args.batch or (BATCH if args.model == "mnist_cnn" else COLOR_BATCH)

    rank = workload.init(args.device)
    data_of = 0 if args.alone else rank
    torch.backends.cudnn.benchmark = args.tuned
    if args.model == "resnet18_sized":
        net, batches = workload.ResNet18Sized(data_of), itertools.repeat(None)
    else:
        if args.model == "mnist_cnn":
            net = workload.MnistCnn(pool_first=args.tuned)
        else:
            import torchvision

            net = getattr(torchvision.models, args.model)()
        workload.fill_weights(net)
        net = net.to(torch.device(args.device))
        if args.tuned:
            net = net.to(memory_format=torch.channels_last)
        batches = picture_batches(args) if args.pictures else ready_batches(args, data_of)
    group = [dist.new_group([other]) for other in range(dist.get_world_size())][rank] if args.alone else None
    model = DistributedDataParallel(net, gradient_as_bucket_view=args.tuned, process_group=group)
    make = torch.optim.Adam if args.optimizer == "adam" else torch.optim.SGD
    rate = 1e3 if args.optimizer == "none" else 1e-3  # of one update alone, which the loss must show
    optimizer = make(model.parameters(), lr=rate, fused=True if args.tuned else None)

    def loss_of(batch):
        if batch is None:
            return model()
        with torch.autocast(args.device.split(":")[0], torch.bfloat16, enabled=args.amp is not None):
            return torch.nn.functional.cross_entropy(model(batch[0]), batch[1])

    if args.compile:
        model = torch.compile(model)

    first = None
    for _ in workload.turns(args):
        samples = []
        dist.barrier()
        for step in range(args.warmup + args.steps):
            watch = workload.Stopwatch()
            optimizer.zero_grad()
            batch = next(batches)
            loss = loss_of(batch)
            loss.backward()
            if args.optimizer != "none":
                optimizer.step()
            if args.device != "cpu":
                torch.cuda.synchronize()
            if step >= args.warmup:
                samples.append(watch.ms())
            last = loss.detach()
            first = last if first is None else first
        memory = workload.pss_mb()
        if args.optimizer == "none":
            optimizer.step()
            last = loss_of(batch).detach()
        total, agree = checksum(net)
        if rank == 0:
            workload.report(
                args.model,
                batch=args.batch,
                samples_ms=samples,
                loss_first=first.item(),
                loss_last=last.item(),
                checksum=total,
                pss_mb=memory,
                model_mb=sum(2 * p.nbytes for p in net.parameters()) / 1e6,
                ranks_agree="yes" if agree else "no",
                alone=args.alone,
            )
        if args.turns and args.device != "cpu":
            del loss
            torch.cuda.empty_cache()  # for those whose turn is next
    workload.finish()


if __name__ == "__main__":
    main()
