"""The peer of ../sharded_step.cpp: PyTorch's fully_shard (FSDP2), or DistributedDataParallel, and AdamW.

    torchrun --standalone --nproc_per_node 2 sharded_step.py [--way ddp|full|independent] [--model gpt:layers=8,width=512]
        [--batch 1] [--amp bf16] [--recompute] [--device cuda:0] [--tuned] [--compile] [--turns]

A GPT-2 as PyTorch's tutorials write it: scaled_dot_product_attention, LayerNorm, GELU(tanh), a tied head. Blocks are
sharded one by one and the root last, as the tutorial of FSDP2 does. --tuned: the fused AdamW, gradients as bucket views
and TF32 for products of f32. --turns: see train_step.py.
"""

import argparse
import sys

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
    def __init__(self, shape, recompute):
        super().__init__()
        self.recompute = recompute
        width = shape["width"]
        self.embed, self.positions = nn.Embedding(shape["vocab_size"], width), nn.Embedding(shape["context"], width)
        self.blocks = nn.ModuleList(Block(width, shape["heads"]) for _ in range(shape["layers"]))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens, targets):
        x = self.embed(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        logits = F.linear(self.norm(x), self.embed.weight)
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def shape_of(text):
    """Of "gpt:layers=8,width=512", as text::gpt_options() reads it: the small GPT-2's, and what differs."""
    shape = {"vocab_size": 50257, "layers": 12, "width": 768, "heads": 12, "context": 1024}
    name, _, fields = text.partition(":")
    given = {key.strip(): int(value) for key, value in (field.split("=") for field in fields.split(",") if field)}
    if name not in ("gpt", "gpt2") or not shape.keys() >= given.keys():
        sys.exit(f"sharded_step.py: expected gpt: with some of {', '.join(shape)}, got {text}")
    if "width" in given and "heads" not in given:
        given["heads"] = given["width"] // 64
    return shape | given


def tokens_of(args, shape, rank, number):
    """Those of ../sharded_step.cpp."""
    length = shape["context"] + 1
    index = torch.arange(args.batch * length) + 7919 * (BATCHES * rank + number)
    tokens = (index * index % 65537 + 3 * index).remainder(shape["vocab_size"])
    return tokens.view(args.batch, length).to(args.device)


def wrapped(net, args):
    if args.way == "ddp":
        return DistributedDataParallel(net, gradient_as_bucket_view=args.tuned)
    if args.way == "independent":
        return net
    mixed = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    policy = mixed if args.amp else MixedPrecisionPolicy()
    mesh = dist.device_mesh.init_device_mesh(args.device.split(":")[0], (dist.get_world_size(),))
    for block in net.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    return fully_shard(net, mesh=mesh, mp_policy=policy)


def run_steps(args, model, optimizer, batches):
    """Of measured steps the milliseconds, and the losses of the first batch."""
    samples, losses, memory = [], [], 0
    autocast = args.amp is not None and args.way != "full"
    for step in range(args.warmup + args.steps):
        watch = workload.Stopwatch()
        tokens = batches[step % BATCHES]
        with torch.autocast(args.device.split(":")[0], torch.bfloat16, enabled=autocast):
            loss = model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        if step + 1 == args.warmup:  # with all gradients
            memory = workload.pss_mb()
        optimizer.step()
        optimizer.zero_grad()
        if args.device != "cpu":
            torch.cuda.synchronize()
        if step >= args.warmup:
            samples.append(watch.ms())
        if step % BATCHES == 0:
            losses.append(loss.item())
    return samples, losses, memory


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--way", choices=["ddp", "full", "independent"], default="full")
    parser.add_argument("--model", default="gpt:vocab_size=1000,layers=8,width=512,heads=8,context=256")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--amp", choices=["bf16"])
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--device", default="cpu", help="cpu, cuda:0, …")
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    parser.add_argument("--turns", action="store_true")
    args = parser.parse_args()
    shape = shape_of(args.model)
    rank = workload.init(args.device)
    if args.tuned:
        torch.set_float32_matmul_precision("high")
    torch.manual_seed(1)
    net = Gpt(shape, args.recompute)
    for name, parameter in net.named_parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)
    model = wrapped(net.to(args.device), args)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01, fused=True if args.tuned else None)
    if args.compile:
        model = torch.compile(model)
    batches = [tokens_of(args, shape, rank, i) for i in range(BATCHES)]
    first = None
    for _ in workload.turns(args):
        dist.barrier()
        samples, losses, memory = run_steps(args, model, optimizer, batches)
        first = losses[0] if first is None else first
        typical = torch.tensor(samples, dtype=torch.float64)
        dist.all_reduce(typical)
        if rank == 0:
            workload.report(
                "gpt",
                batch=args.batch,
                samples_ms=(typical / dist.get_world_size()).tolist(),
                loss_first=first,
                loss_last=losses[-1],
                pss_mb=memory,
                ranks_agree="yes",
            )
        if args.turns and args.device != "cpu":
            torch.cuda.empty_cache()  # for those whose turn is next
    workload.finish()


if __name__ == "__main__":
    main()
