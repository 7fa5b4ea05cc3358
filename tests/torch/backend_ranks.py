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
KEPT = []  # until the end of the process
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
            assert len(ours[name]) == len(tensors), name
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


def shapes():
    """Tensors that are not simply there in order, and operations that want whole tensors."""
    rank, size = dist.get_rank(), dist.get_world_size()

    def ones_of(rank):
        return torch.full((2, 3), float(rank))

    whole = torch.empty(size * 2, 3)
    dist._all_gather_base(whole, ones_of(rank))
    assert torch.equal(whole, torch.cat([ones_of(other) for other in range(size)]))
    wide = torch.empty(3, size * 2).t()  # not contiguous
    dist._all_gather_base(wide, ones_of(rank))
    assert torch.equal(wide, whole)
    part = torch.empty(3, 2).t()
    dist._reduce_scatter_base(part, whole + rank)
    assert torch.equal(part, (ones_of(rank) + torch.arange(size).float().mean()) * size), part
    # Rank i sends i + j rows to rank j, each with its own number.
    rows = [rank + other for other in range(size)]
    got = torch.empty(sum(rows), 2)
    dist.all_to_all_single(got, torch.full((sum(rows), 2), float(rank)), rows, rows)
    assert torch.equal(got, torch.cat([torch.full((rank + other, 2), float(other)) for other in range(size)])), got
    even = torch.empty(size)
    dist.all_to_all_single(even, torch.arange(size).float() + 10 * rank)
    assert torch.equal(even, torch.arange(size).float() * 10 + rank), even

    nothing, number = torch.empty(0), torch.tensor(float(rank))
    dist.all_reduce(nothing)
    dist.all_gather([torch.empty(0) for _ in range(size)], nothing)
    dist.all_reduce(number)
    assert number.item() == sum(range(size))
    mean = torch.tensor([7 * rank, -7 * rank])
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    total = 7 * sum(range(size))
    assert mean.tolist() == [total // size, -(total // size)], mean  # truncated

    with torch.inference_mode():
        transposed = torch.zeros(3, 2).t()
        if rank == 0:
            for other in range(1, size):
                dist.send(torch.arange(6.0).reshape(2, 3), other)
        else:
            dist.recv(transposed, 0)
            assert torch.equal(transposed, torch.arange(6.0).reshape(2, 3)), transposed
    print("done")


def several():
    """Several tensors of a process in one call, as the groups themselves take them."""
    rank, size = dist.get_rank(), dist.get_world_size()
    group = dist.group.WORLD

    def mine():
        return [torch.tensor([2.0 * rank + other]).expand(2).contiguous() for other in range(2)]

    def filled(value):
        return torch.full((2,), float(value))

    everybody = range(2 * size)
    last = torch.tensor(everybody[-1])
    for op, expected in [
        (dist.ReduceOp.SUM, sum(everybody)),
        (dist.ReduceOp.PRODUCT, 0),
        (dist.ReduceOp.MIN, 0),
        (dist.ReduceOp.MAX, last),
    ]:
        options, tensors = dist.AllreduceOptions(), mine()
        options.reduceOp = op
        group.allreduce(tensors, options).wait()
        assert all(torch.equal(tensor, filled(expected)) for tensor in tensors), (op, tensors)
    columns = [torch.stack([tensor, tensor], 1)[:, 0] for tensor in mine()]  # not contiguous
    group.allreduce(columns).wait()
    assert all(torch.equal(column, filled(sum(everybody))) for column in columns), columns
    masks = [torch.tensor([1 << (2 * rank + other)]) for other in range(2)]
    for op, expected in [(dist.ReduceOp.BOR, 2 ** (2 * size) - 1), (dist.ReduceOp.BAND, 0)]:
        options, tensors = dist.AllreduceOptions(), [mask.clone() for mask in masks]
        options.reduceOp = op
        group.allreduce(tensors, options).wait()
        assert all(tensor.item() == expected for tensor in tensors), (op, tensors)
    options, tensors = dist.BroadcastOptions(), mine()
    options.rootRank, options.rootTensor = size - 1, 1
    group.broadcast(tensors, options).wait()
    assert all(torch.equal(tensor, filled(last)) for tensor in tensors), tensors
    lists = [[torch.empty(2) for _ in everybody] for _ in range(2)]
    group.allgather(lists, mine()).wait()
    assert all(torch.equal(one, filled(i)) for listed in lists for i, one in enumerate(listed)), lists
    sparse = [torch.sparse_coo_tensor([[rank + other]], [1.0], (size + 1,)) for other in range(2)]
    group.allreduce(sparse).wait()
    expected = torch.full((size + 1,), 2.0)
    expected[0] = expected[-1] = 1
    assert all(torch.equal(tensor.to_dense(), expected) for tensor in sparse), sparse
    options = dist.AllreduceOptions()
    options.reduceOp = dist.ReduceOp.AVG
    refused(lambda: group.allreduce(mine(), options), "AVG is for one tensor")
    refused(lambda: group.allreduce([torch.ones(1), torch.ones(2)]), "invalid tensor size at index 1")
    print("done")


def callbacks():
    """Who is told of an end may call further operations, and wait for them; values have Gloo's form."""
    rank, size = dist.get_rank(), dist.get_world_size()
    gloo = dist.new_group(backend="gloo")

    def chained(future):
        first = future.value()[0]
        second = first.clone()
        inner = dist.all_reduce(second, async_op=True).get_future().wait()[0]
        assert inner is not None
        dist.all_reduce(second)
        return first + second

    def called_later(future):  # in the order of their operations, whichever takes longer
        if rank == 0 and future.value()[0].item() == size:
            time.sleep(0.05)
        inner.append(future.value()[0] * 100)
        works.append(dist.all_reduce(inner[-1], async_op=True))

    inner, works = [], []
    outer = [dist.all_reduce(torch.tensor([1.0 + i]), async_op=True).get_future().then(called_later) for i in range(4)]
    for future in outer:
        future.wait()
    for work in works:
        work.wait()
    assert sorted(tensor.item() for tensor in inner) == [100.0 * (1 + i) * size**2 for i in range(4)], inner

    for _ in range(20):
        work = dist.all_reduce(torch.tensor([1.0]), async_op=True)
        behind = torch.tensor([5.0])
        chain = work.get_future().then(chained)
        total = chain.wait()
        dist.all_reduce(behind)
        assert total.item() == size + size**3 and behind.item() == 5 * size, (total, behind)

    def forms(group):
        lists = [[torch.empty(2), torch.empty(3)] for _ in range(size)]
        work = dist.all_gather_coalesced(lists, [torch.full((2,), rank + 0.5), torch.full((3,), -1.0)], group, True)
        gathered = dist.all_gather([torch.empty(1) for _ in range(size)], torch.tensor([float(rank)]), group, True)
        return [work.get_future().wait() if hasattr(work, "get_future") else work.wait(), gathered.get_future().wait()]

    assert str(forms(None)) == str(forms(gloo)), (forms(None), forms(gloo))
    print("done")


def power_sgd():
    """DistributedDataParallel with a hook that sums within the callbacks of its sums."""
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    def trained_with_hook(group):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4))
        model = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
        state = powerSGD_hook.PowerSGDState(group, matrix_approximation_rank=2, start_powerSGD_iter=2, min_compression_rate=0.1)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        samples = torch.Generator().manual_seed(dist.get_rank())
        for _ in range(6):
            optimizer.zero_grad()
            model(torch.randn(8, 16, generator=samples)).square().mean().backward()
            optimizer.step()
        return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])

    gloo = dist.new_group(backend="gloo")
    KEPT.append(gloo)  # Gloo ends the process where a callback has the last reference to the group
    theirs = trained_with_hook(gloo)
    for _ in range(5):
        group = dist.new_group()
        ours = trained_with_hook(group)
        assert torch.equal(ours, theirs), (ours - theirs).abs().max()
        dist.destroy_process_group(group)
        del group
    print("done")


def rounded_once():
    """Sums of 16 bits whose terms are lost where each is rounded: of ranks, of several tensors of one, and sparse ones."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype, large, small in [(torch.float16, 2048.0, 1.0), (torch.bfloat16, 256.0, 1.0)]:
        terms = [[large, small, small] if other == 0 else [small, small, small] for other in range(size)]
        expected = torch.tensor([sum(map(sum, terms))]).to(dtype)
        tensors = [torch.tensor([term], dtype=dtype) for term in terms[rank]]
        dist.group.WORLD.allreduce(tensors).wait()
        assert all(torch.equal(tensor, expected) for tensor in tensors), (tensors, expected)
        columns = [torch.tensor([[term, 0.0]] * 2, dtype=dtype)[:, 0] for term in terms[rank]]  # not contiguous
        dist.group.WORLD.allreduce(columns).wait()
        assert all(torch.equal(column, expected.expand(2)) for column in columns), (columns, expected)
        sparse = [torch.sparse_coo_tensor([[1]], torch.tensor([term], dtype=dtype), (3,)) for term in terms[rank]]
        dist.group.WORLD.allreduce(sparse).wait()
        for tensor in sparse:
            assert tensor.dtype == dtype and torch.equal(tensor.to(torch.float32).to_dense()[1:2], expected.float()), tensor
    empty = torch.sparse_coo_tensor(torch.empty(1, 0, dtype=torch.int64), torch.empty(0), (3,))
    mine = empty if rank == 0 else torch.sparse_coo_tensor([[2]], [float(rank)], (3,))
    dist.all_reduce(mine)
    assert torch.equal(mine.to_dense(), torch.tensor([0.0, 0.0, float(sum(range(size)))])), mine
    print("done")


def records():
    """The flight record under the wrapper of TORCH_DISTRIBUTED_DEBUG=DETAIL, and of groups that have none."""
    rank, size = dist.get_rank(), dist.get_world_size()
    dist.all_reduce(torch.ones(1))
    assert "all_reduce" in [operation["op"] for operation in argosy.torch.flight_record()]
    others = dist.new_group([size - 1])
    if rank != size - 1:
        refused(lambda: argosy.torch.flight_record(others), "this rank is not in the group")
    gloo = dist.new_group(backend="gloo")
    refused(lambda: argosy.torch.flight_record(gloo), "not argosy")
    dist.barrier()
    print("done")


def forked():
    """A child of the process cannot use the group, says so, and ends; the group goes on."""
    dist.all_reduce(torch.ones(1))
    work = dist.all_reduce(torch.ones(1), async_op=True)
    work.wait()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        refused(lambda: dist.all_reduce(torch.ones(1)), "forked from it")
        if dist.get_rank() == 0:  # it serves PyTorch's store, whose end crashes in a forked process
            kept = dist.distributed_c10d._get_default_store()
            dist.destroy_process_group()
            assert kept
            os._exit(0)
        sys.exit(0)  # with all that Python does at its end
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    dist.all_reduce(torch.ones(1))
    print("done", flush=True)


def parts_of_the_world():
    """Groups of some ranks, and of one."""
    rank, size = dist.get_rank(), dist.get_world_size()
    evens = dist.new_group(range(0, size, 2))
    alone = [dist.new_group([other]) for other in range(size)][rank]
    if rank % 2 == 0:
        tensor = torch.tensor([rank])
        dist.all_reduce(tensor, group=evens)
        assert tensor.item() == sum(range(0, size, 2))
        dist.broadcast(tensor, 0, group=evens)
        assert argosy.torch.flight_record(evens)[-1]["op"] == "broadcast"
    got = torch.empty(3)
    dist.all_to_all_single(got, torch.arange(3.0), group=alone)
    assert torch.equal(got, torch.arange(3.0))
    refused(lambda: dist.all_to_all_single(torch.empty(2), torch.ones(16), group=alone), "invalid split sizes")
    refused(lambda: dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND, group=alone), "no such reduction")
    dist.barrier()
    print("done")


def divided():
    """Groups that the group itself makes, from PyTorch 2.9 on: of some ranks in another order, and of those again."""
    rank, size = dist.get_rank(), dist.get_world_size()
    backwards = list(reversed(range(size - 1)))
    group = dist.split_group(split_ranks=[backwards, [size - 1]], timeout=timedelta(seconds=20))
    tensor = torch.tensor([1 << rank])
    dist.all_reduce(tensor, group=group)
    assert tensor.item() == (1 << rank if rank == size - 1 else (1 << (size - 1)) - 1), tensor
    if rank < size - 1:
        assert dist.get_rank(group) == backwards.index(rank)
        first = torch.tensor([rank])
        dist.broadcast(first, size - 2, group=group)
        assert first.item() == size - 2, first
        again = dist.split_group(group, [list(range(size - 1))])
        dist.all_reduce(first, group=again)
        assert first.item() == (size - 1) * (size - 2), first
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    assert backend.options._timeout == timedelta(seconds=30), backend.options._timeout
    backend._set_default_timeout(timedelta(seconds=23))
    assert backend.options._timeout == timedelta(seconds=23), backend.options._timeout
    dist.barrier()
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


def buckets():
    """From PyTorch 2.7 on the buckets of DDP lie in memory that the ranks share, and outlive the group."""
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 3), gradient_as_bucket_view=True)
    for _ in range(3):
        model.zero_grad()
        model(torch.full((2, 3), float(dist.get_rank() + 1))).sum().backward()
    operations = [operation["op"] for operation in argosy.torch.flight_record()]
    offered = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 7)
    offered = offered and not torch.cuda.is_available() and os.environ["DDP_DISABLE_COMM_MEM"] == "0"
    assert ("allocate_tensor" in operations) == offered, operations
    dist.destroy_process_group()
    mean = sum(range(1, 1 + int(os.environ["WORLD_SIZE"]))) / int(os.environ["WORLD_SIZE"])
    assert torch.equal(model.module.weight.grad, torch.full((3, 3), 2 * mean)), model.module.weight.grad
    print("done")


def bits():
    """A sum whose bits depend on its order, as a number: the test compares transports."""
    generator = torch.Generator().manual_seed(7 + dist.get_rank())
    tensor = torch.randn(10_001, generator=generator) * 10 ** torch.randint(-6, 7, (10_001,), generator=generator).float()
    dist.all_reduce(tensor)
    print("bits", tensor.view(torch.int32).to(torch.int64).mul(torch.arange(10_001)).sum().item())


def everybody_asked():
    """Rank 0 returns when all who live have called this."""
    store, rank, size = dist.distributed_c10d._get_default_store(), dist.get_rank(), dist.get_world_size()
    store.set(f"asked {rank}", "")
    if rank == 0:
        store.wait([f"asked {other}" for other in range(size - 1)])


def dies(who, words):
    """A rank dies amid a training: all others name it."""
    tensor = torch.ones(1000)
    dist.all_reduce(tensor)
    if dist.get_rank() == who:
        os._exit(3)
    try:
        dist.all_reduce(tensor)
    except RuntimeError as error:
        assert words in str(error), error
        last = argosy.torch.flight_record()[-1]
        assert last["op"] == "all_reduce" and last["state"] == "failed", last
        print("named", flush=True)
        if who != 0:
            everybody_asked()  # rank 0's store, which ends with it
        os._exit(0)
    raise AssertionError("the all_reduce with a dead rank has ended well")


def death_of_the_last():
    last = dist.get_world_size() - 1
    dies(last, f"rank {last} died")


def death_of_the_first():
    """It has the store in which the others look for who died."""
    dies(0, "rank 0 is gone")


def hang():
    """A rank that hangs is named by the others a second after their limit."""
    last = dist.get_world_size() - 1
    part = dist.new_group(timeout=timedelta(seconds=1))
    if dist.get_rank() == last:
        time.sleep(15)
    else:
        began = time.monotonic()
        refused(lambda: dist.all_reduce(torch.ones(1), group=part), f"rank {last}")
        assert 1 <= time.monotonic() - began < 10, time.monotonic() - began
        everybody_asked()
    print("named", flush=True)
    os._exit(0)


def left_out():
    """A rank leaves out a call: the calls that meet differ, and all say so."""
    if dist.get_rank() != dist.get_world_size() - 1:
        work = dist.all_reduce(torch.ones(1), async_op=True)
        refused(work.wait, "barrier")
    refused(dist.barrier, "all_reduce")
    print("named", flush=True)
    everybody_asked()
    os._exit(0)


def again():
    """Groups one after another in one store of PyTorch's, which must not lead into a group that is over."""
    rank, size = dist.get_rank(), dist.get_world_size()
    store = dist.TCPStore("127.0.0.1", 0, size, True, wait_for_workers=False) if rank == 0 else None
    port = torch.tensor([store.port if store else 0])
    dist.broadcast(port, 0)
    store = store or dist.TCPStore("127.0.0.1", port.item(), size, False)
    dist.destroy_process_group()
    for number in range(3):
        dist.init_process_group("argosy", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=20))
        tensor = torch.tensor([number + rank])
        dist.all_reduce(tensor)
        assert tensor.item() == number * size + sum(range(size))
        dist.barrier()
        dist.destroy_process_group()
    print("done")


def broadcast_from(root):
    options = dist.BroadcastOptions()
    options.rootRank, options.rootTensor = root, 0
    return options


def refused(call, words):
    try:
        call()
    except (RuntimeError, ValueError) as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)


def misuse():
    """What cannot work says so, and the group goes on."""
    size = dist.get_world_size()
    expanded = torch.empty(1).expand(4)
    for call, words in [
        (lambda: dist.all_reduce(torch.ones(2, dtype=torch.int16)), "cannot be reduced; expected Float"),
        (lambda: dist.group.WORLD.broadcast([torch.ones(2)], broadcast_from(9)).wait(), "invalid root rank: 9"),
        (lambda: dist.all_gather([torch.empty(3)] * size, torch.ones(2)), "expected as many elements"),
        (lambda: dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND), "no such reduction"),
        (lambda: dist.all_reduce(torch.ones(2, dtype=torch.bool), dist.ReduceOp.AVG), "no such reduction"),
        (lambda: dist.all_reduce_coalesced([torch.ones(2)], dist.ReduceOp.BXOR), "no such reduction"),
        (lambda: dist.recv(expanded, 0), "several elements lie at one place"),
        (lambda: dist.broadcast(expanded, 0), "several elements lie at one place"),
        (lambda: dist.all_to_all_single(torch.empty(2), torch.empty(2), [3, -1], [3, -1]), "is negative"),
        (lambda: dist.all_to_all_single(torch.empty(2), torch.empty(4)), "invalid split sizes"),
    ]:
        refused(call, words)
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == dist.get_world_size()
    print("done")


def main():
    dist.init_process_group("argosy", timeout=timedelta(seconds=30))
    globals()[sys.argv[1]]()
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
