#!/usr/bin/env python3
"""Writes trainings that the real Paddle was in the middle of, for other_states_test, and what they come to:

    paddle_adam.pdparams, paddle_adam.pdopt after three steps
    paddle_adam.txt the rate and the weights after two more: name, then the elements, as Paddle keeps them
    paddle_plateau.pdopt a ReduceOnPlateau whose metric was best at 0.25 and then 0.5

usage: generate_paddle.py FOLDER (Paddle 3)
"""
import os
import sys

import numpy as np
import paddle

CASES = {
    "paddle_adam": lambda p, s: paddle.optimizer.Adam(s, parameters=p),
    "paddle_adamw": lambda p, s: paddle.optimizer.AdamW(s, parameters=p, weight_decay=0.1),
    "paddle_momentum": lambda p, s: paddle.optimizer.Momentum(s, 0.9, parameters=p),
}


def step(net, optimizer, scheduler):
    inputs = paddle.to_tensor(np.sin(np.arange(12, dtype="float32")).reshape(4, 3))
    loss = net(inputs).pow(2).sum()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    scheduler.step()


def plateau():
    net = paddle.nn.Linear(3, 4)
    scheduler = paddle.optimizer.lr.ReduceOnPlateau(0.1, factor=0.5, patience=1)
    optimizer = paddle.optimizer.SGD(scheduler, parameters=net.parameters())
    for metric in (0.75, 0.25, 0.5):
        scheduler.step(metric)
    paddle.save(optimizer.state_dict(), "paddle_plateau.pdopt")


def main():
    os.chdir(sys.argv[1])
    paddle.set_device("cpu")
    plateau()
    for name, make_optimizer in CASES.items():
        paddle.seed(3)
        net = paddle.nn.Sequential(paddle.nn.Linear(3, 4), paddle.nn.Tanh(), paddle.nn.Linear(4, 2))
        scheduler = paddle.optimizer.lr.StepDecay(0.1, step_size=2, gamma=0.5)
        optimizer = make_optimizer(net.parameters(), scheduler)
        for _ in range(3):
            step(net, optimizer, scheduler)
        paddle.save(net.state_dict(), name + ".pdparams")
        paddle.save(optimizer.state_dict(), name + ".pdopt")
        for _ in range(2):
            step(net, optimizer, scheduler)
        with open(name + ".txt", "w") as out:
            out.write(f"# by generate_paddle.py, Paddle {paddle.__version__}\n")
            out.write(f"lr {optimizer.get_lr()!r}\n")
            for key, tensor in net.state_dict().items():
                out.write(" ".join([key, *(repr(float(v)) for v in tensor.numpy().flatten())]) + "\n")


main()
