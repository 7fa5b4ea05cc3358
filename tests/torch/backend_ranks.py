"""What the ranks of backend_test.sh do: each function here is one job, named on the command line.

    argosy torchrun --nproc_per_node 3 backend_ranks.py same_as_gloo
"""

import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

import argosy.torch

ROWS, COLUMNS = 6, 5
TYPES = [torch.float32, torch.float64, torch.int8, torch.uint8, torch.int32, torch.int64]
GLOO_LACKS = [torch.bfloat16, torch.float16, torch.bool]  # in PyTorch 1.13


def numbers(dtype, seed):
    values = torch.randint(0, 2 if dtype is torch.bool else 5, (ROWS, COLUMNS), generator=torch.Generator().manual_seed(seed))
    return values.to(dtype)


def parts(tensor):
    return list(tensor.clone().chunk(dist.get_world_size()))


def collectives(mine, group):
    """Each collective's results, by its name."""
    rank, size = dist.get_rank(), dist.get_world_size()
    last = size - 1
    results = {}

    def told(name, *tensors):
        results[name] = [tensor.clone() for tensor in tensors]

    for op in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX):
        tensor = mine.clone()
        dist.all_reduce(tensor, op, group=group)
        told(f"all_reduce {op}", tensor)
    transposed = mine.t().clone().t()  # not contiguous
    dist.all_reduce(transposed, group=group)
    told("all_reduce of a transposed one", transposed)
    tensor = mine.clone()
    dist.reduce(tensor, last, group=group)
    if rank == last:
        told("reduce", tensor)
    tensor = mine.clone()
    dist.broadcast(tensor, last, group=group)
    told("broadcast", tensor)
    listed = [torch.empty_like(mine) for _ in range(size)]
    dist.all_gather(listed, mine, group=group)
    told("all_gather", *listed)
    listed = [torch.empty_like(mine) for _ in range(size)] if rank == last else None
    dist.gather(mine, listed, last, group=group)
    told("gather", *(listed or []))
    part = torch.empty_like(mine)
    dist.scatter(part, [(mine + i).to(mine.dtype) for i in range(size)] if rank == last else None, last, group=group)
    told("scatter", part)
    other = torch.empty_like(mine)
    before, after = (rank - 1) % size, (rank + 1) % size
    for work in dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, mine, after, group, 3), dist.P2POp(dist.irecv, other, before, group, 3)]
    ):
        work.wait()
    told("messages", other)
    dist.barrier(group=group)
    return results


def same_as_gloo():
    """Every collective, for every type that Gloo has, gives what Gloo gives."""
    gloo = dist.new_group(backend="gloo")
    compared = 0
    for dtype in TYPES:
        mine = numbers(dtype, dist.get_rank())
        ours, theirs = collectives(mine, None), collectives(mine, gloo)
        assert ours.keys() == theirs.keys()
        for name, tensors in theirs.items():
            for our, their in zip(ours[name], tensors):
                assert our.dtype == their.dtype and torch.equal(our, their), (name, dtype, our, their)
                compared += 1
    print("compared", compared)


def what_gloo_lacks():
    """Sums in 16 bits and of truths, averages, and parts of different sizes."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype in GLOO_LACKS:
        tensor = numbers(dtype, rank)
        dist.all_reduce(tensor)
        expected = sum(numbers(dtype, other).float() for other in range(size))
        assert torch.equal(tensor, expected.to(dtype)), (tensor, expected)
    tensor = numbers(torch.float32, rank)
    dist.all_reduce(tensor, dist.ReduceOp.AVG)
    expected = sum(numbers(torch.float32, other) for other in range(size)) / size
    assert torch.equal(tensor, expected)
    output = torch.empty(rank + 1, COLUMNS)
    inputs = [torch.full((other + 1, COLUMNS), float(rank)) for other in range(size)]
    dist.reduce_scatter(output, inputs)
    assert torch.equal(output, torch.full_like(output, sum(range(size))))
    gathered = [torch.empty(size, other + 1) for other in range(size)]
    dist.all_to_all(gathered, [torch.full((size, rank + 1), float(rank)) for _ in range(size)])
    for other, tensor in enumerate(gathered):
        assert torch.equal(tensor, torch.full_like(tensor, other)), (other, tensor)
    twice = torch.full((3,), float(rank))
    lists = [twice, twice, torch.ones(2, 2)]
    dist.all_reduce_coalesced(lists)
    assert torch.equal(twice, torch.full((3,), float(sum(range(size))))), twice
    assert torch.equal(lists[2], torch.full((2, 2), float(size)))
    print("done")


def any_source():
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank != 0:
        dist.send(torch.tensor([10 * rank]), 0)
    else:
        for _ in range(1, size):
            tensor = torch.zeros(1, dtype=torch.int64)
            source = dist.recv(tensor)
            assert tensor.item() == 10 * source, (tensor, source)
    dist.barrier()
    print("done")


class Net(torch.nn.Module):
    """With rows of an embedding that few ranks touch: their gradients are sparse."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(20, 8, sparse=True)
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, rows):
        return self.linear(self.embedding(rows).mean(1))


def trained(group):
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(Net(), process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.randint(0, 20, (6, 3), generator=generator)).square().sum().backward()
        optimizer.step()
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def ddp():
    """DistributedDataParallel trains as over Gloo: to the bit on two ranks, whose sums have one order only."""
    ours, theirs = trained(None), trained(dist.new_group(backend="gloo"))
    close = torch.equal(ours, theirs) if dist.get_world_size() == 2 else torch.allclose(ours, theirs, atol=1e-5)
    assert close, (ours - theirs).abs().max()
    print("trained", float(ours.double().sum()))


def bits():
    """A sum whose bits depend on its order, as a number: the test compares transports."""
    generator = torch.Generator().manual_seed(7 + dist.get_rank())
    tensor = torch.randn(10_001, generator=generator) * 10 ** torch.randint(-6, 7, (10_001,), generator=generator).float()
    dist.all_reduce(tensor)
    print("bits", tensor.view(torch.int32).to(torch.int64).mul(torch.arange(10_001)).sum().item())


def death():
    """The last rank dies amid a training: all others name it."""
    rank, size = dist.get_rank(), dist.get_world_size()
    tensor = torch.ones(1000)
    dist.all_reduce(tensor)
    if rank == size - 1:
        os._exit(3)
    try:
        dist.all_reduce(tensor)
    except RuntimeError as error:
        assert f"rank {size - 1} died" in str(error), error
        last = argosy.torch.flight_record()[-1]
        assert last["op"] == "all_reduce" and last["state"] == "failed", last
        print("named", flush=True)
        time.sleep(2 if rank == 0 else 0)  # the others ask its store, which ends with it
        os._exit(0)
    raise AssertionError("the all_reduce with a dead rank has ended well")


def broadcast_from(root):
    options = dist.BroadcastOptions()
    options.rootRank, options.rootTensor = root, 0
    return options


def misuse():
    """What cannot work says so, and the group goes on."""
    for call, words in [
        (lambda: dist.all_reduce(torch.ones(2, dtype=torch.int16)), "cannot be reduced; expected Float"),
        (lambda: dist.group.WORLD.broadcast([torch.ones(2)], broadcast_from(9)).wait(), "invalid root rank: 9"),
        (lambda: dist.all_gather([torch.empty(3)] * dist.get_world_size(), torch.ones(2)), "expected as many elements"),
    ]:
        try:
            call()
        except (RuntimeError, ValueError) as error:
            assert words in str(error), error
        else:
            raise AssertionError(words)
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == dist.get_world_size()
    print("done")


def main():
    dist.init_process_group("argosy", timeout=timedelta(seconds=30))
    globals()[sys.argv[1]]()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
