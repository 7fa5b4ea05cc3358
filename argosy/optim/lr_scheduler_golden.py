#!/usr/bin/env python3
"""Writes golden/lr_schedules.txt, which lr_golden_test.cpp reads: the rates of PyTorch's and Paddle's own
schedulers over 1,000 steps.

    python lr_scheduler_golden.py > golden/lr_schedules.txt      # with torch and paddle installed

A line per schedule: name | the first 24 rates | for each ten steps the sum of (i + 1) * rate of step i of
the ten, so that a hundred numbers hold a thousand.
"""
import math
import warnings

import paddle
import torch

warnings.filterwarnings("ignore")
STEPS = 1000
lr = torch.optim.lr_scheduler
pd = paddle.optimizer.lr


def torch_rates(make, metric=None):
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=0.4, momentum=0.9)
    scheduler = make(optimizer)
    result = []
    for step in range(STEPS):
        result.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        scheduler.step(metric(step)) if metric else scheduler.step()
    return result


def paddle_rates(scheduler, metric=None):
    result = []
    for step in range(STEPS):
        result.append(float(scheduler()))
        scheduler.step(metric(step)) if metric else scheduler.step()
    return result


def show(name, rates):
    head = " ".join(f"{v:.17g}" for v in rates[:24])
    sums = " ".join(f"{math.fsum((i + 1) * rates[b + i] for i in range(10)):.17g}" for b in range(0, STEPS, 10))
    print(f"{name} | {head} | {sums}")


def curve(step):
    """A metric that falls, stays, rises and falls again; of integers, so that C++ has the same bits."""
    return ((step * 7919) % 101) / 101 + max(0, 300 - step) / 100 + (abs(step - 600) % 350) / 175


print(f"# PyTorch {torch.__version__}, Paddle {paddle.__version__}; written by lr_scheduler_golden.py")
show("torch.ConstantLR", torch_rates(lambda o: lr.ConstantLR(o, factor=0.25, total_iters=30)))
show("torch.StepLR", torch_rates(lambda o: lr.StepLR(o, 70, 0.5)))
show("torch.MultiStepLR", torch_rates(lambda o: lr.MultiStepLR(o, [5, 300, 300, 800], 0.3)))
show("torch.LinearLR", torch_rates(lambda o: lr.LinearLR(o, 0.125, 0.75, 600)))
show("torch.ExponentialLR", torch_rates(lambda o: lr.ExponentialLR(o, 0.995)))
show("torch.PolynomialLR", torch_rates(lambda o: lr.PolynomialLR(o, 800, 2.0)))
show("torch.LambdaLR", torch_rates(lambda o: lr.LambdaLR(o, lambda t: 1 / (1 + t // 30))))
show("torch.MultiplicativeLR", torch_rates(lambda o: lr.MultiplicativeLR(o, lambda t: 1 - 1 / (t + 200))))
show("torch.CosineAnnealingLR", torch_rates(lambda o: lr.CosineAnnealingLR(o, 999, 0.01)))
show("torch.CosineAnnealingWarmRestarts", torch_rates(lambda o: lr.CosineAnnealingWarmRestarts(o, 30, 2, 0.01)))
show("torch.CosineAnnealingWarmRestarts.even", torch_rates(lambda o: lr.CosineAnnealingWarmRestarts(o, 30)))
cycle = dict(cycle_momentum=False)
show("torch.OneCycleLR", torch_rates(lambda o: lr.OneCycleLR(o, 0.5, 1000, **cycle)))
show("torch.OneCycleLR.linear", torch_rates(lambda o: lr.OneCycleLR(o, 0.5, 1000, anneal_strategy="linear", pct_start=0.1, **cycle)))
show("torch.OneCycleLR.three_phase", torch_rates(lambda o: lr.OneCycleLR(o, 0.5, 1001, three_phase=True, div_factor=10.0, final_div_factor=100.0, **cycle)))
show("torch.CyclicLR", torch_rates(lambda o: lr.CyclicLR(o, 0.1, 0.5, 40, 60, **cycle)))
show("torch.CyclicLR.triangular2", torch_rates(lambda o: lr.CyclicLR(o, 0.1, 0.5, 70, mode="triangular2", **cycle)))
show("torch.CyclicLR.exp_range", torch_rates(lambda o: lr.CyclicLR(o, 0.1, 0.5, 70, mode="exp_range", gamma=0.998, **cycle)))
show("torch.CyclicLR.scale_fn", torch_rates(lambda o: lr.CyclicLR(o, 0.1, 0.5, 70, scale_fn=lambda x: 1 / x, scale_mode="cycle", **cycle)))
show("torch.SequentialLR", torch_rates(lambda o: lr.SequentialLR(
    o, [lr.LinearLR(o, 0.1, 1.0, 50), lr.CosineAnnealingLR(o, 500), lr.ExponentialLR(o, 0.99)], [50, 550])))
show("torch.ChainedScheduler", torch_rates(lambda o: lr.ChainedScheduler(
    [lr.ConstantLR(o, 0.1, 20), lr.ExponentialLR(o, 0.997), lr.StepLR(o, 300, 0.5)])))
plateau = dict(factor=0.7, patience=5, threshold=1e-3)
show("torch.ReduceLROnPlateau", torch_rates(lambda o: lr.ReduceLROnPlateau(o, **plateau), curve))
show("torch.ReduceLROnPlateau.cooldown", torch_rates(
    lambda o: lr.ReduceLROnPlateau(o, cooldown=17, min_lr=1e-3, eps=1e-5, **plateau), curve))
show("torch.ReduceLROnPlateau.max_abs", torch_rates(
    lambda o: lr.ReduceLROnPlateau(o, mode="max", threshold_mode="abs", **plateau), lambda t: -curve(t)))
show("paddle.NoamDecay", paddle_rates(pd.NoamDecay(64, 100, 0.4)))
show("paddle.PiecewiseDecay", paddle_rates(pd.PiecewiseDecay([10, 400, 900], [0.4, 0.3, 0.05, 0.01])))
show("paddle.NaturalExpDecay", paddle_rates(pd.NaturalExpDecay(0.4, 0.01)))
show("paddle.InverseTimeDecay", paddle_rates(pd.InverseTimeDecay(0.4, 0.1)))
show("paddle.PolynomialDecay", paddle_rates(pd.PolynomialDecay(0.4, 300, power=1.5)))
show("paddle.PolynomialDecay.cycle", paddle_rates(pd.PolynomialDecay(0.4, 90, 0.01, 1.0, cycle=True)))
show("paddle.LinearWarmup", paddle_rates(pd.LinearWarmup(pd.CosineAnnealingDecay(0.4, T_max=700), 50, 0.1, 0.4)))
show("paddle.LinearWarmup.piecewise", paddle_rates(
    pd.LinearWarmup(pd.PiecewiseDecay([100, 500], [0.4, 0.04, 0.004]), 25, 0.0, 0.4)))
show("paddle.ExponentialDecay", paddle_rates(pd.ExponentialDecay(0.4, 0.995)))
show("paddle.MultiStepDecay", paddle_rates(pd.MultiStepDecay(0.4, [7, 200, 700], 0.25)))
show("paddle.StepDecay", paddle_rates(pd.StepDecay(0.4, 90, 0.6)))
show("paddle.LambdaDecay", paddle_rates(pd.LambdaDecay(0.4, lambda t: 0.99 ** t)))
show("paddle.MultiplicativeDecay", paddle_rates(pd.MultiplicativeDecay(0.4, lambda t: 1 - 1 / (t + 200))))
show("paddle.CosineAnnealingDecay", paddle_rates(pd.CosineAnnealingDecay(0.4, 300, 0.02)))
show("paddle.CosineAnnealingWarmRestarts", paddle_rates(pd.CosineAnnealingWarmRestarts(0.4, 17, 3)))
show("paddle.OneCycleLR", paddle_rates(pd.OneCycleLR(0.5, 1000, 20.0, 0.001, 0.25)))
show("paddle.OneCycleLR.three_phase", paddle_rates(pd.OneCycleLR(0.5, 1000, phase_pct=0.4, three_phase=True, anneal_strategy="linear")))
show("paddle.CyclicLR", paddle_rates(pd.CyclicLR(0.1, 0.5, 35, 90, "exp_range", 0.999)))
show("paddle.LinearLR", paddle_rates(pd.LinearLR(0.4, 444, 0.2, 0.9)))
show("paddle.ReduceOnPlateau", paddle_rates(pd.ReduceOnPlateau(0.4, **plateau), curve))
show("paddle.ReduceOnPlateau.cooldown", paddle_rates(
    pd.ReduceOnPlateau(0.4, cooldown=17, min_lr=1e-3, epsilon=1e-5, **plateau), curve))
