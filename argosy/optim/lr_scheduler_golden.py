#!/usr/bin/env python3
"""Prints the sequences that lr_scheduler_test.cpp holds, from PyTorch and Paddle themselves.

    python lr_scheduler_golden.py        # with torch and paddle installed
"""
import torch


def torch_sequence(make, steps):
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=0.4)
    scheduler = make(optimizer)
    result = []
    for _ in range(steps):
        result.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return result


def show(name, values):
    print(f"// {name}\n{{{', '.join(f'{v:.17g}' for v in values)}}}")


lr = torch.optim.lr_scheduler
print(f"// PyTorch {torch.__version__}")
show("ConstantLR(factor=0.25, total_iters=3)",
     torch_sequence(lambda o: lr.ConstantLR(o, factor=0.25, total_iters=3), 5))
show("StepLR(step_size=2, gamma=0.5)", torch_sequence(lambda o: lr.StepLR(o, 2, 0.5), 7))
show("CosineAnnealingLR(T_max=5, eta_min=0.1)",
     torch_sequence(lambda o: lr.CosineAnnealingLR(o, 5, 0.1), 9))
try:
    import paddle
except ImportError:
    raise SystemExit("// paddle is not installed")
cosine = paddle.optimizer.lr.CosineAnnealingDecay(0.4, T_max=4)
warmup = paddle.optimizer.lr.LinearWarmup(cosine, warmup_steps=4, start_lr=0.1, end_lr=0.4)
values = []
for _ in range(9):
    values.append(warmup())
    warmup.step()
print(f"// Paddle {paddle.__version__}")
show("LinearWarmup(CosineAnnealingDecay(0.4, T_max=4), 4, start_lr=0.1, end_lr=0.4)", values)
