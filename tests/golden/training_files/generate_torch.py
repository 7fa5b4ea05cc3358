#!/usr/bin/env python3
"""Writes trainings that the real PyTorch was in the middle of, for other_states_test, and what they come to:

    adam.pth {"model": …, "optimizer": …, "lr_scheduler": …, "epoch": 3} after three steps
    adam.txt the rate and the weights after two more: name, then the elements

usage: generate_torch.py FOLDER (PyTorch 2)
"""
import os
import sys

import torch
from torch import nn

STEP = torch.optim.lr_scheduler.StepLR
CASES = {
    "adam": (lambda p: torch.optim.Adam(p, lr=0.1), lambda o: STEP(o, 2, 0.5)),
    "adamw": (lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.1),
              lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 8)),
    "sgd": (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9)),
    "rmsprop": (lambda p: torch.optim.RMSprop(p, lr=0.01), lambda o: STEP(o, 1, 0.5)),
    "adagrad": (lambda p: torch.optim.Adagrad(p, lr=0.1), lambda o: STEP(o, 4, 0.5)),
    # Two groups in another order than the model's parameters.
    "groups": (lambda p: torch.optim.AdamW([{"params": p[2:]}, {"params": p[:2], "lr": 0.01, "weight_decay": 0.0}], lr=0.1),
               lambda o: STEP(o, 2, 0.5)),
}


def step(net, optimizer, scheduler):
    inputs = torch.arange(12, dtype=torch.float32).view(4, 3).sin()
    loss = net(inputs).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()


def main():
    os.chdir(sys.argv[1])
    for name, (make_optimizer, make_scheduler) in CASES.items():
        torch.manual_seed(3)
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        optimizer = make_optimizer(list(net.parameters()))
        scheduler = make_scheduler(optimizer)
        for _ in range(3):
            step(net, optimizer, scheduler)
        torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict(),
                    "lr_scheduler": scheduler.state_dict(), "epoch": 3}, name + ".pth")
        for _ in range(2):
            step(net, optimizer, scheduler)
        with open(name + ".txt", "w") as out:
            out.write(f"# by generate_torch.py, torch {torch.__version__}\n")
            out.write(f"lr {optimizer.param_groups[0]['lr']!r}\n")
            for key, tensor in net.state_dict().items():
                out.write(" ".join([key, *(repr(v) for v in tensor.flatten().tolist())]) + "\n")


main()
