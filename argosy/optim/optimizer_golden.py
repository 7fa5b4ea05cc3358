#!/usr/bin/env python3
"""Writes golden/optimizers.txt, which optimizer_golden_test.cpp reads: weights after 100 steps of Paddle's own
optimizers, and averages after 50 updates of PyTorch's AveragedModel.

    python optimizer_golden.py > golden/optimizers.txt      # with torch and paddle installed

Weights and gradients are fractions of small integers, and so are all options: Paddle's kernels take them as
f32 even for f64 weights. A line per case and precision: name precision | all weights in order.
"""
import numpy as np
import paddle
import torch

paddle.set_device("cpu")
SHAPES = {"fc.weight": (5, 4), "fc.bias": (4,), "scale": (1,)}


def weight(k, size):
    return np.array([((i * 37 + k * 11) % 64 - 31) / 32 for i in range(size)])


def gradient(k, size, step):
    return np.array([((i * 7919 + k * 104729 + step * 1299709) % 1009 - 504) / 1024 for i in range(size)])


def show(name, precision, values):
    print(f"{name} {precision} | {' '.join(f'{v:.17g}' for v in np.concatenate([a.reshape(-1) for a in values]))}")


def run(name, make):
    for precision in ("float32", "float64"):
        paddle.set_default_dtype(precision)
        parameters = []
        for k, (own, shape) in enumerate(SHAPES.items()):
            parameter = paddle.create_parameter(shape, precision, name=f"{name}.{precision}.{own}")
            parameter.set_value(weight(k, parameter.size).reshape(shape).astype(precision))
            parameters.append(parameter)
        optimizer = make(parameters)
        for step in range(100):
            if step == 50:
                optimizer.set_lr(optimizer.get_lr() / 2)
            loss = 0
            for k, p in enumerate(parameters):
                loss = loss + (p * paddle.to_tensor(gradient(k, p.size, step).reshape(p.shape).astype(precision))).sum()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
        show(name, precision, [p.numpy() for p in parameters])


def average(name, decay):
    for precision in (torch.float32, torch.float64):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = torch.nn.Parameter(torch.zeros(40, dtype=precision))

        net = Net()
        averaged = torch.optim.swa_utils.AveragedModel(
            net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(decay))
        for step in range(50):
            with torch.no_grad():
                net.w.copy_(torch.from_numpy(gradient(0, 40, step)))
            averaged.update_parameters(net)
        show(name, str(precision).split(".")[1], [averaged.module.w.detach().numpy()])


print(f"# PyTorch {torch.__version__}, Paddle {paddle.__version__}; written by optimizer_golden.py")
opt = paddle.optimizer
betas = dict(beta1=0.875, beta2=0.984375)
tiny = 2.0 ** -20
run("Lamb", lambda p: opt.Lamb(2.0 ** -6, 2.0 ** -6, epsilon=tiny, parameters=p, **betas))
run("Lamb.exclude", lambda p: opt.Lamb(2.0 ** -6, 0.125, epsilon=tiny, parameters=p,
                                       exclude_from_weight_decay_fn=lambda p: p.name.endswith("bias"), **betas))
run("Lamb.always_adapt", lambda p: opt.Lamb(2.0 ** -6, 0.0, epsilon=tiny, parameters=p, always_adapt=True, **betas))
run("Lamb.clip", lambda p: opt.Lamb(2.0 ** -6, 2.0 ** -6, epsilon=tiny, parameters=p,
                                    grad_clip=paddle.nn.ClipGradByValue(0.25), **betas))
lars = paddle.incubate.optimizer.LarsMomentumOptimizer
run("Lars", lambda p: lars(0.5, 0.75, lars_coeff=0.125, lars_weight_decay=2.0 ** -6, parameter_list=p))
run("Lars.exclude", lambda p: lars(2.0 ** -6, 0.875, lars_coeff=0.25, lars_weight_decay=0.125, epsilon=0.0625,
                                   parameter_list=p, exclude_from_weight_decay=["bias"]))
run("RMSProp", lambda p: opt.RMSProp(2.0 ** -6, 0.9375, tiny, parameters=p))
run("RMSProp.momentum", lambda p: opt.RMSProp(2.0 ** -6, 0.9375, 2.0 ** -8, 0.75, parameters=p, weight_decay=0.125))
run("RMSProp.centered", lambda p: opt.RMSProp(2.0 ** -6, 0.9375, 2.0 ** -8, 0.5, True, parameters=p))
run("Adagrad", lambda p: opt.Adagrad(0.125, tiny, parameters=p, initial_accumulator_value=0.25))
average("EMA", 0.9)
average("EMA.slow", 0.999)
average("EMA.fast", 0.25)
