"""PyTorch's DistributedDataParallel as its users write it; nothing here knows who starts it."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    assert int(os.environ["LOCAL_RANK"]) == rank
    torch.manual_seed(rank)  # DDP must bring the weights together
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    inputs = torch.randn(64, 8)
    targets = inputs.sum(dim=1, keepdim=True)
    losses = []
    for _ in range(50):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    all_flat = [torch.empty_like(flat) for _ in range(size)]
    dist.all_gather(all_flat, flat)
    assert losses[-1] < losses[0] / 2, losses
    assert all(torch.equal(flat, other) for other in all_flat)
    print(f"rank {rank} of {size}: loss fell, weights agree", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
