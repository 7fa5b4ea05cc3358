"""The peer of ../picture_input.cpp: batches of pictures from torchvision and PyTorch's DataLoader, in one process.

    python picture_input.py flowers|cifar10|mnist PATH [--num_workers 0] [--epochs 3] [--batch 32] [--tensors]
        [--start fork] [--first_batch]

Plain: torchvision's transforms on Pillow's pictures, as its tutorials write them. --tensors: transforms.v2 on u8
tensors, as its performance notes advise (JPEGs by torchvision.io). --start: how workers begin (spawn or fork).
CIFAR-10's binary batches are read by NumPy; pictures and transforms are torchvision's own. mnist: torchvision's root.
"""

import argparse
import os
import tarfile
import time

import numpy
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import datasets, io as pictures, transforms
from torchvision.transforms import v2

import workload

IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
CIFAR = ([0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616])


def chain(crop, crop_v2, normal, tensors):
    if not tensors:
        return transforms.Compose([crop, transforms.RandomHorizontalFlip(), transforms.ToTensor(), transforms.Normalize(*normal)])
    return v2.Compose([crop_v2, v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(*normal)])


def read_tensor(path):
    return pictures.decode_image(path, mode="RGB")


def flowers(args):
    transform = chain(transforms.RandomResizedCrop(224), v2.RandomResizedCrop(224, antialias=True), IMAGENET, args.tensors)
    loader = {"loader": read_tensor} if args.tensors else {}
    return datasets.ImageFolder(args.path, transform=transform, **loader), 32


class Cifar(Dataset):
    """torchvision's CIFAR10 after its reading of the files."""

    def __init__(self, path, transform, tensors):
        rows = []
        with tarfile.open(path) as archive:
            for member in archive:
                if "data_batch" in member.name:
                    rows.append(numpy.frombuffer(archive.extractfile(member).read(), numpy.uint8).reshape(-1, 3073))
        rows = numpy.concatenate(rows)
        self.targets = rows[:, 0].tolist()
        chw = rows[:, 1:].reshape(-1, 3, 32, 32)
        self.data = torch.from_numpy(chw.copy()) if tensors else numpy.ascontiguousarray(chw.transpose(0, 2, 3, 1))
        self.transform = transform
        self.tensors = tensors

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        picture = self.data[index] if self.tensors else Image.fromarray(self.data[index])
        return self.transform(picture), self.targets[index]


def cifar10(args):
    transform = chain(transforms.RandomCrop(32, padding=4), v2.RandomCrop(32, padding=4), CIFAR, args.tensors)
    return Cifar(args.path, transform, args.tensors), 128


def mnist(args):
    return datasets.MNIST(args.path, transform=transforms.ToTensor()), 100


def ms_since_started():
    return (time.time_ns() - int(os.environ["STARTED"])) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=["flowers", "cifar10", "mnist"])
    parser.add_argument("path")
    parser.add_argument("--num_workers", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3, help="the first is not timed")
    parser.add_argument("--batch", type=int, help="pictures of a batch; without: the work's")
    parser.add_argument("--tensors", action="store_true")
    parser.add_argument("--start", choices=["fork", "spawn"], default="fork")
    parser.add_argument("--first_batch", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    data, batch_size = {"flowers": flowers, "cifar10": cifar10, "mnist": mnist}[args.work](args)
    workers = {"num_workers": args.num_workers, "persistent_workers": True, "multiprocessing_context": args.start} if args.num_workers else {}
    loader = DataLoader(data, batch_size=args.batch or batch_size, shuffle=True, **workers)
    samples, mean = [], 0.0
    for epoch in range(args.epochs):
        images = 0
        watch = workload.Stopwatch()
        for batch, _ in loader:
            if args.first_batch:
                ms = ms_since_started()
                workload.report(args.work, samples_ms=[ms], images=batch.shape[0], mean=batch.mean().item())
                return
            images += batch.shape[0]
            if epoch == 0:
                mean += batch.mean().item() * batch.shape[0]
        if epoch:
            samples.append(watch.ms())
    workload.report(args.work, samples_ms=samples, images=images, mean=mean / images)


if __name__ == "__main__":
    main()
