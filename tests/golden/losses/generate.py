#!/usr/bin/env python3
"""Values and gradients of PyTorch's losses, for argosy/loss/loss_test.cpp.

    python3 generate.py > torch.txt        # needs torch

Each line: name, value (several for reduction none), |, gradient by the output. Inputs are formulas,
which stand in the test too.
"""
import torch
from torch import nn

torch.set_default_dtype(torch.float64)
N, C = 6, 5
i = torch.arange(N, dtype=torch.float64)[:, None]
c = torch.arange(C, dtype=torch.float64)[None, :]
logits = torch.sin(1 + 5 * i + c) * 2
other = torch.cos(2 + 3 * i + 2 * c)
labels = (3 * torch.arange(N) + 1) % C
ignored = labels.clone()
ignored[2] = -100
ignored[4] = -100
probabilities = (other * 2).softmax(1)
weight = 0.5 + torch.arange(C, dtype=torch.float64) * 0.75
inside = torch.sigmoid(logits)
signs = torch.where(torch.arange(N) % 2 == 0, 1.0, -1.0)
spatial = logits.t().reshape(1, C, 2, 3).repeat(2, 1, 1, 1)
places = labels.reshape(1, 2, 3).repeat(2, 1, 1)
places[1, 0, 1] = -100


def show(name, loss, output, *targets):
    x = output.clone().requires_grad_()
    value = loss(x, *targets)
    value.sum().backward()
    numbers = lambda t: " ".join(f"{v:.17g}" for v in t.detach().flatten().tolist())
    print(f"{name} {numbers(value)} | {numbers(x.grad)}")


print(f"# PyTorch {torch.__version__}")
for reduction in ("mean", "sum", "none"):
    show(f"ce.{reduction}", nn.CrossEntropyLoss(reduction=reduction), logits, labels)
    show(f"ce.all.{reduction}", nn.CrossEntropyLoss(weight=weight, label_smoothing=0.1, reduction=reduction), logits, ignored)
    show(f"ce.smooth.ignored.{reduction}", nn.CrossEntropyLoss(label_smoothing=0.3, reduction=reduction), logits, ignored)
    show(f"ce.probabilities.all.{reduction}", nn.CrossEntropyLoss(weight=weight, label_smoothing=0.1, reduction=reduction), logits, probabilities)
show("ce.weight", nn.CrossEntropyLoss(weight=weight), logits, labels)
show("ce.weight.ignored", nn.CrossEntropyLoss(weight=weight), logits, ignored)
show("ce.smooth", nn.CrossEntropyLoss(label_smoothing=0.1), logits, labels)
show("ce.smooth.1", nn.CrossEntropyLoss(label_smoothing=1.0), logits, labels)
show("ce.ignore_index.1", nn.CrossEntropyLoss(ignore_index=1, weight=weight, label_smoothing=0.2), logits, labels)
show("ce.probabilities", nn.CrossEntropyLoss(), logits, probabilities)
show("ce.spatial", nn.CrossEntropyLoss(weight=weight), spatial, places)
show("ce.spatial.smooth", nn.CrossEntropyLoss(weight=weight, label_smoothing=0.1), spatial, places)
show("nll", nn.NLLLoss(weight=weight), logits, ignored)
for reduction in ("mean", "sum", "none"):
    show(f"mse.{reduction}", nn.MSELoss(reduction=reduction), logits, other)
    show(f"bce_with_logits.{reduction}", nn.BCEWithLogitsLoss(pos_weight=weight, reduction=reduction), logits, probabilities)
    show(f"kl_div.{reduction}", nn.KLDivLoss(reduction=reduction), logits, probabilities)
show("l1", nn.L1Loss(), logits, other)
show("smooth_l1", nn.SmoothL1Loss(beta=0.5), logits, other)
show("huber", nn.HuberLoss(delta=0.5), logits, other)
show("bce", nn.BCELoss(), inside, probabilities)
show("bce.weight", nn.BCELoss(weight=weight), inside, probabilities)
show("bce_with_logits", nn.BCEWithLogitsLoss(), logits, probabilities)
show("bce_with_logits.weight", nn.BCEWithLogitsLoss(weight=weight, pos_weight=weight.flip(0)), logits, probabilities)
show("kl_div.batchmean", nn.KLDivLoss(reduction="batchmean"), logits, probabilities)
show("kl_div.log", nn.KLDivLoss(log_target=True), logits, probabilities.log())
show("cosine_embedding", nn.CosineEmbeddingLoss(margin=0.1), logits, other, signs)
show("margin_ranking", nn.MarginRankingLoss(margin=0.2), logits[:, 0], other[:, 0], signs)
show("triplet_margin", nn.TripletMarginLoss(margin=0.8), logits, other, probabilities)
show("triplet_margin.swap", nn.TripletMarginLoss(margin=3.0, p=1.0, swap=True), logits, other, probabilities)
