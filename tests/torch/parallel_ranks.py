"""PyTorch's ways to spread a model over ranks, on the backend that is named, for backend_test.sh: FSDP2, tensor
parallelism, DTensor and pipelining. Each rank prints the bits of its results, so that two backends can be compared.

    argosy torchrun --nproc_per_node 2 parallel_ranks.py argosy
"""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

STEPS = 5


def told(name, tensors):
    """Prints the results' bits as one number, which depends on every one of them and on its place."""
    whole = [tensor.full_tensor() if isinstance(tensor, DTensor) else tensor for tensor in tensors]
    bits = torch.cat([tensor.detach().flatten() for tensor in whole]).view(torch.int32).to(torch.int64)
    print("bits", dist.get_rank(), name, bits.mul(torch.arange(1, bits.numel() + 1)).sum().item(), flush=True)


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))


def trained(model, seed):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(torch.randn(8, 16, generator=generator)).square().sum().backward()
        optimizer.step()
    return model.parameters()


def fsdp2(mesh):
    model = net()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    told("fsdp2", trained(model, seed=dist.get_rank()))


def tensor_parallel(mesh):
    model = parallelize_module(net(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    told("tensor_parallel", trained(model, seed=3))


def dtensor(mesh):
    rows = distribute_tensor(torch.arange(24.0).reshape(4, 6), mesh, [Shard(0)])
    told("dtensor", [rows @ rows.t().redistribute(mesh, [Replicate()]), rows.redistribute(mesh, [Shard(1)]).to_local()])


def pipelining(schedule):
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    part = [nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(size)][rank]
    stage = PipelineStage(part, rank, size, torch.device("cpu"))
    steps = schedule(stage, n_microbatches=4, loss_fn=lambda output, target: (output - target).square().sum())
    inputs = torch.randn(8, 16, generator=torch.Generator().manual_seed(5))
    steps.step(*([inputs] if rank == 0 else []), **({"target": torch.zeros(8, 16)} if rank == size - 1 else {}))
    told(schedule.__name__, [parameter.grad for parameter in part.parameters()])


def main():
    backend = sys.argv[1]
    if backend == "argosy":
        import argosy.torch  # noqa: F401
    dist.init_process_group(backend)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    fsdp2(mesh)
    tensor_parallel(mesh)
    dtensor(mesh)
    pipelining(ScheduleGPipe)
    pipelining(Schedule1F1B)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
