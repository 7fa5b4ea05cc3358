#!/usr/bin/env python3
"""Writes state_dicts as the real torch.save does, for torch_file_test, and what is in them:

    types.pth half Half [2, 3] [3, 1] : 0.5 1.5 …        name, type, sizes, strides, elements

usage: generate.py FOLDER
"""
import argparse
import collections
import os
import sys

import numpy
import torch
from torch import nn

TYPES = {"float": torch.float32, "double": torch.float64, "half": torch.float16, "bfloat16": torch.bfloat16,
         "long": torch.int64, "int": torch.int32, "short": torch.int16, "char": torch.int8, "byte": torch.uint8,
         "bool": torch.bool, "complex": torch.complex64}


def types():
    base = torch.arange(-3, 3).reshape(2, 3)
    entries = collections.OrderedDict((name, (base.abs() if dtype == torch.uint8 else base).to(dtype))
                                      for name, dtype in TYPES.items())
    entries["half"] += 0.5
    shared = torch.arange(12, dtype=torch.float32)
    entries |= {"scalar": torch.tensor(7.25), "count": torch.tensor(1 << 40), "empty": torch.empty(0, 3),
                "first": shared[:6].view(2, 3), "last": shared[6:], "every_second": shared[1::2],
                "transposed": shared.view(3, 4).t(), "expanded": torch.tensor([4.0]).expand(3, 2),
                "channels_last": shared.clone().view(1, 3, 2, 2).contiguous(memory_format=torch.channels_last)}
    return entries


def model():
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    net(torch.randn(5, 3))
    return net


def checkpoint():
    net = model()
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4])
    return {"epoch": 3, "best": numpy.float64(0.75), "classes": ["cat", "dog"], "size": torch.Size([3, 2]),
            "done": None, "state_dict": net.state_dict(), "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict()}


def part_of_resnet34():
    """Three entries of torchvision's, of which the first and the last do not fit a net of one channel and ten classes."""
    value = torch.tensor([0.5])
    return collections.OrderedDict([("conv1.weight", value.expand(64, 3, 7, 7)), ("bn1.weight", value.expand(64)),
                                    ("fc.weight", value.expand(1000, 512))])


class Evil:
    def __reduce__(self):
        return os.system, ("echo executed",)


def describe(file, entries):
    for name, tensor in entries.items():
        tensor = tensor.detach()
        kind = str(tensor.dtype).replace("torch.", "")
        flat = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        print(file, name, kind, list(tensor.shape), list(tensor.stride()), ":",
              *(repr(float(v)) for v in flat.flatten().tolist()))


def main():
    os.chdir(sys.argv[1])
    print(f"# torch {torch.__version__}")
    net = model()
    wrapped = collections.OrderedDict(("module." + name, t) for name, t in net.state_dict().items())
    parameters = collections.OrderedDict(net.named_parameters())
    parameters["0.bias"].rank = 2  # an attribute
    for file, entries in {"types.pth": types(), "model.pth": net.state_dict(), "wrapped.pth": wrapped,
                          "parameters.pth": parameters}.items():
        torch.save(entries, file)
        describe(file, entries)
    torch.save(part_of_resnet34(), "resnet34_part.pth")  # for examples/check_resume.sh
    torch.save(checkpoint(), "checkpoint.pth")
    describe("checkpoint.pth", torch.load("checkpoint.pth", weights_only=False)["state_dict"])
    torch.save(net.state_dict(), "legacy.pth", _use_new_zipfile_serialization=False)
    torch.save({"args": argparse.Namespace(lr=0.1), "state_dict": net.state_dict()}, "namespace.pth")
    torch.save({"weight": torch.ones(2), "evil": Evil()}, "evil.pth")
    torch.save(net, "module.pth")
    torch.save([torch.ones(2)], "list.pth")


if __name__ == "__main__":
    main()
