"""The peer of ../picture_input.cpp: JPEGs by NVIDIA DALI on the CPU, as its ImageNet example reads them.

    python picture_input_dali.py FOLDER [--num_workers 1] [--epochs 3]

FOLDER: one of pictures for each class. DALI decodes only the crop (image_random_crop), resizes it to 224 × 224, flips
and normalizes; batches of 32 become tensors. --num_workers: its threads.
"""

import argparse

import torch
from nvidia.dali import fn, pipeline_def, types

import workload

BATCH = 32


@pipeline_def(device_id=None)
def batches(folder):
    files, labels = fn.readers.file(file_root=folder, random_shuffle=True, name="files")
    images = fn.decoders.image_random_crop(
        files, device="cpu", output_type=types.RGB, random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3]
    )
    images = fn.resize(images, size=[224, 224], interp_type=types.INTERP_TRIANGULAR)
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mirror=fn.random.coin_flip(),
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
    )
    return images, labels


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path")
    parser.add_argument("--num_workers", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3, help="the first is not timed")
    args = parser.parse_args()
    pipe = batches(args.path, batch_size=BATCH, num_threads=args.num_workers)
    pipe.build()
    total = pipe.reader_meta("files")["epoch_size"]
    samples, mean, images = [], 0.0, 0
    for epoch in range(args.epochs):
        images = 0
        watch = workload.Stopwatch()
        while images < total:  # its last batch reaches into the next epoch
            batch, _ = pipe.run()
            batch = torch.from_numpy(batch.as_array())
            images += batch.shape[0]
            if epoch == 0:
                mean += batch.mean().item() * batch.shape[0]
        if epoch:
            samples.append(watch.ms() * total / images)
        else:
            mean /= images
    workload.report("flowers", samples_ms=samples, images=total, mean=mean)


if __name__ == "__main__":
    main()
