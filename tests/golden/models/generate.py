#!/usr/bin/env python3
"""Writes what torchvision's models are, draw and compute, for torchvision_test.

    resnet50 size parameters=25557032 gmacs=4.089          gmacs: torchvision's own figure
    resnet50 drawn fc.weight first=0.018 sum=22.058        after torch.manual_seed(1)
    resnet50 computes images=2 largest=17 … : 0.1 0.2 …    the first logits of each image

What is computed has weights and images that follow from a formula, so that both sides have the same
without a file: element i of entry k of the state_dict, or of the images (k = 1000), is made of

    x = i + 1000003 k;  twice: x = (x ^ x >> 16) * 73244475;  u = (x ^ x >> 16) / 2^32 - 0.5

with 32-bit integers, then 1 + u/2 (running_var), 1/2 + u/5 (other weights of one dimension), u/5
(biases and running_mean), 2 u sqrt(6 / fan_in) (weights), 3 u (images), in double, rounded to float.
"""
import math

import numpy
import torch
import torchvision

NAMES = ["resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnext50_32x4d",
         "resnext101_32x8d", "resnext101_64x4d", "wide_resnet50_2", "wide_resnet101_2"]
DRAWN = ["conv1.weight", "layer2.0.conv2.weight", "layer2.0.downsample.0.weight", "layer4.1.bn2.weight",
         "layer4.1.conv2.weight", "fc.weight", "fc.bias"]
COMPUTED = ["resnet18", "resnet34", "resnet50", "resnext50_32x4d", "wide_resnet50_2"]


def noise(k, count):
    mask = numpy.uint64(0xFFFFFFFF)
    x = (numpy.arange(count, dtype=numpy.uint64) + numpy.uint64(k * 1000003)) & mask
    for _ in range(2):
        x = ((x ^ (x >> numpy.uint64(16))) * numpy.uint64(73244475)) & mask
    return ((x ^ (x >> numpy.uint64(16))).astype(numpy.float64)) / 2.0**32 - 0.5


def formula(k, name, shape):
    u = noise(k, math.prod(shape))
    if name.endswith("running_var"):
        u = 1 + u / 2
    elif name.endswith(("bias", "running_mean")):
        u = u / 5
    elif len(shape) == 1:
        u = 0.5 + u / 5
    else:
        u = 2 * u * math.sqrt(6 / math.prod(shape[1:]))
    return torch.from_numpy(u.astype(numpy.float32).reshape(shape))


def fill(model):
    entries = model.state_dict()
    model.load_state_dict({name: formula(k, name, tuple(tensor.shape)) if tensor.dim() else tensor
                           for k, (name, tensor) in enumerate(entries.items())})
    return model.eval()


def images(count, channels, side):
    shape = (count, channels, side, side)
    return torch.from_numpy((3 * noise(1000, math.prod(shape))).astype(numpy.float32).reshape(shape))


def main():
    print(f"# torch {torch.__version__}, torchvision {torchvision.__version__}")
    for name in NAMES:
        build = getattr(torchvision.models, name)
        meta = torchvision.models.get_model_weights(name).DEFAULT.meta
        torch.manual_seed(1)
        model = build()
        count = sum(p.numel() for p in model.parameters())
        assert count == meta["num_params"]
        print(f"{name} size parameters={count} gmacs={meta['_ops']}")
        if name not in COMPUTED:
            continue
        parameters = dict(model.named_parameters())
        for key in DRAWN:
            if key in parameters:
                p = parameters[key].detach().flatten()
                print(f"{name} drawn {key} first={p[0].item()!r} sum={p.double().sum().item()!r}")
        with torch.no_grad():
            logits = fill(model)(images(2, 3, 64))
        for i, row in enumerate(logits):
            print(f"{name} computes image={i} largest={row.argmax().item()} :",
                  *(repr(v) for v in row[:8].tolist()))


if __name__ == "__main__":
    main()
