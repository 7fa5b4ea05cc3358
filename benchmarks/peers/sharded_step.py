"""The peer of ../sharded_step.cpp: PyTorch's fully_shard (FSDP2), or DistributedDataParallel, and Adam.

    torchrun --standalone --nproc_per_node 2 sharded_step.py [--way ddp|full|independent] [--batch 1] [--amp bf16] [--recompute]

A GPT-2 as PyTorch's tutorials write it: scaled_dot_product_attention, LayerNorm, GELU(tanh), a tied head. Blocks are
sharded one by one and the root last, as the tutorial of FSDP2 does.
"""

import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import workload

BATCHES = 4


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (y.view(n, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.recompute = args.recompute
        self.embed, self.positions = nn.Embedding(args.vocab, args.width), nn.Embedding(args.context, args.width)
        self.blocks = nn.ModuleList(Block(args.width, args.heads) for _ in range(args.layers))
        self.norm = nn.LayerNorm(args.width)

    def forward(self, tokens, targets):
        x = self.embed(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        logits = F.linear(self.norm(x), self.embed.weight)
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def tokens_of(args, rank, number):
    """Those of ../sharded_step.cpp."""
    index = torch.arange(args.batch * (args.context + 1)) + 7919 * (BATCHES * rank + number)
    return (index * index % 65537 + 3 * index).remainder(args.vocab).view(args.batch, args.context + 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--way", choices=["ddp", "full", "independent"], default="full")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--vocab", type=int, default=1000)
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--amp", choices=["bf16"])
    parser.add_argument("--recompute", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    net = Gpt(args)
    for name, parameter in net.named_parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)
    if args.way == "full":
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if args.amp else MixedPrecisionPolicy()
        mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
        for block in net.blocks:
            fully_shard(block, mesh=mesh, mp_policy=policy)
        model = fully_shard(net, mesh=mesh, mp_policy=policy)
    elif args.way == "ddp":
        model = DistributedDataParallel(net, gradient_as_bucket_view=True)
    else:
        model = net
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    batches = [tokens_of(args, rank, i) for i in range(BATCHES)]
    samples, losses = [], []
    for step in range(args.warmup + args.steps):
        begin = time.perf_counter()
        tokens = batches[step % BATCHES]
        with torch.autocast("cpu", torch.bfloat16, enabled=args.amp is not None and args.way != "full"):
            loss = model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        if step + 1 == args.warmup:
            memory = workload.pss_mb()
        optimizer.step()
        optimizer.zero_grad()
        if step >= args.warmup:
            samples.append((time.perf_counter() - begin) * 1e3)
        if step % BATCHES == 0:
            losses.append(loss.item())
    typical = torch.tensor(samples, dtype=torch.float64)
    dist.all_reduce(typical)
    if rank == 0:
        workload.report(
            "gpt",
            ranks=dist.get_world_size(),
            batch=args.batch,
            samples_ms=(typical / dist.get_world_size()).tolist(),
            loss_first=losses[0],
            loss_last=losses[-1],
            pss_mb=memory,
            ranks_agree="yes",
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
