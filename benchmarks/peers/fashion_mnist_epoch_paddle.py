"""The peer of ../fashion_mnist_epoch.cpp: one epoch in PaddlePaddle, as its users write it.

    python -m paddle.distributed.launch --nproc_per_node 2 fashion_mnist_epoch_paddle.py --root FOLDER

FOLDER: as for fashion_mnist_epoch.py. Each rank evaluates every n-th test image, so that each counts once.
"""

import argparse
import gzip
import json
import os
import sys
import time

import numpy as np
import paddle
import paddle.distributed as dist
from paddle import nn
from paddle.io import DataLoader, DistributedBatchSampler, Subset
from paddle.vision.datasets import FashionMNIST
from paddle.vision.transforms import ToTensor


class MnistCnn(nn.Layer):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2D(1, 16, 5, padding=2),
            nn.BatchNorm2D(16),
            nn.ReLU(),
            nn.MaxPool2D(2),
            nn.Conv2D(16, 32, 5, padding=2),
            nn.BatchNorm2D(32),
            nn.ReLU(),
            nn.MaxPool2D(2),
        )
        self.fc = nn.Linear(7 * 7 * 32, 10)

    def forward(self, x):
        return self.fc(paddle.flatten(self.features(x), 1))


def packed(root, name):
    """Paddle reads .gz files only."""
    path = os.path.join(root, "FashionMNIST", "raw", name)
    target = f"{path}.{os.getpid()}.gz"
    with open(path, "rb") as source, gzip.open(target, "wb", compresslevel=1) as out:
        out.write(source.read())
    return target


def dataset(root, mode, prefix):
    images = packed(root, f"{prefix}-images-idx3-ubyte")
    labels = packed(root, f"{prefix}-labels-idx1-ubyte")
    return FashionMNIST(image_path=images, label_path=labels, mode=mode, transform=ToTensor(), backend="cv2")


def total(*numbers):
    sums = paddle.to_tensor(np.array(numbers, dtype=np.float64))
    if dist.get_world_size() > 1:
        dist.all_reduce(sums)
    return sums.numpy()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", required=True)
    parser.add_argument("--batch_size", type=int, default=64)
    args = parser.parse_args()
    paddle.set_device("cpu")
    dist.init_parallel_env()
    rank, world = dist.get_rank(), dist.get_world_size()
    train = dataset(args.root, "train", "train")
    test = dataset(args.root, "test", "t10k")
    sampler = DistributedBatchSampler(train, args.batch_size, shuffle=True)
    loader = DataLoader(train, batch_sampler=sampler)
    test_loader = DataLoader(Subset(test, range(rank, len(test), world)), batch_size=500)
    net = MnistCnn()
    model = paddle.DataParallel(net)
    optimizer = paddle.optimizer.Adam(1e-3, parameters=model.parameters())

    start = time.perf_counter()
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images), labels.flatten())
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    net.eval()
    right, count = 0, 0
    with paddle.no_grad():
        for images, labels in test_loader:
            right += int((net(images).argmax(1) == labels.flatten()).sum())
            count += labels.shape[0]
    right, count = total(right, count)
    ms = (time.perf_counter() - start) * 1e3
    if rank == 0:
        fields = {"bench": "fashion_mnist", "ranks": world, "samples_ms": [ms], "accuracy": right / count}
        print(json.dumps({**fields, "evaluated": int(count), "paddle": paddle.__version__}), flush=True)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
