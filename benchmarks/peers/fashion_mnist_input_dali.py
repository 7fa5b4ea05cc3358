"""The batches of an epoch of Fashion-MNIST from NVIDIA DALI on the CPU, delivered to PyTorch and not trained on.

    torchrun --standalone --nproc_per_node 2 fashion_mnist_input_dali.py --root FOLDER

DALI has no reader for IDX files, so torchvision reads them into memory (before the clock starts, as the other peers do)
and an external source cuts whole batches in DistributedSampler's order; DALI converts and normalizes them.
"""

import argparse

import numpy
import torch
import torch.distributed as dist
from nvidia.dali import fn, pipeline_def, types
from torch.utils.data.distributed import DistributedSampler
from torchvision.datasets import FashionMNIST

import workload


@pipeline_def(num_threads=1, device_id=None, prefetch_queue_depth=2)
def batches(source):
    images, labels = fn.external_source(source=source, num_outputs=2, batch=True, cycle="raise")
    images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, mean=[0.0], std=[255.0], output_layout="CHW")
    return images, labels


class Source:
    """Batches of u8 [n, 28, 28, 1] and i64 [n, 1]."""

    def __init__(self, data, batch_size):
        self.images = data.data.numpy()[..., None]
        self.labels = data.targets.numpy()[:, None]
        order = numpy.array(list(DistributedSampler(data, shuffle=True)))
        self.batches = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]

    def __iter__(self):
        for batch in self.batches:
            yield self.images[batch], self.labels[batch]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", required=True)
    parser.add_argument("--batch_size", type=int, default=64)
    args = parser.parse_args()
    rank = workload.init()
    source = Source(FashionMNIST(args.root, train=True), args.batch_size)
    pipe = batches(source, batch_size=args.batch_size)
    pipe.build()
    dist.barrier()
    watch = workload.Stopwatch()
    count = 0
    for _ in source.batches:
        images, labels = pipe.run()
        images = torch.from_numpy(images.as_array())
        labels = torch.from_numpy(labels.as_array())[:, 0]
        count += images.shape[0]
    ms = watch.ms()
    total = torch.tensor([count], dtype=torch.int64)
    dist.all_reduce(total)
    if rank == 0:
        workload.report("input", samples_ms=[ms], images=total.item())
    workload.finish()


if __name__ == "__main__":
    main()
