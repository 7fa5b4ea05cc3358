"""What the ranks of backend_test.sh do: each function here is one job, named on the command line.

    argosy torchrun --nproc_per_node 3 backend_ranks.py collectives
"""

import hashlib
import os
import sys
from datetime import timedelta

import numpy as np
import paddle
import paddle.distributed as dist
from paddle import nn
from paddle.distributed import collective

import argosy.paddle

TYPES = ["float32", "float64", "int8", "uint8", "int32", "int64"]
BESIDE_GLOO = ["same_as_gloo", "data_parallel_beside_gloo", "trained_by_gloo"]  # nothing of Paddle's is replaced there


def rank_and_size():
    return dist.get_rank(), dist.get_world_size()


def numbers(dtype, rank, shape=(6, 5)):
    return np.random.default_rng(rank).integers(0, 5, shape).astype(dtype)


def of(array):
    return paddle.to_tensor(array)


def same(tensor, expected):
    found = tensor.numpy()
    expected = np.asarray(expected, found.dtype)
    assert found.shape == expected.shape and np.array_equal(found, expected), (found, expected)


def results(mine, group):
    """What each collective that Paddle's Gloo has gives, by its name. No messages: after one between two of three ranks
    Gloo's collectives do not find each other."""
    rank, size = rank_and_size()
    last, found = size - 1, {}
    for name in ("SUM", "MAX", "MIN", "PROD"):
        tensor = of(mine)
        dist.all_reduce(tensor, getattr(dist.ReduceOp, name), group=group)
        found[f"all_reduce {name}"] = [tensor]
    tensor = of(mine)
    dist.reduce(tensor, last, group=group)
    if rank == last:
        found["reduce"] = [tensor]
    tensor = of(mine)
    dist.broadcast(tensor, last, group=group)
    found["broadcast"] = [tensor]
    found["all_gather"] = []
    dist.all_gather(found["all_gather"], of(mine), group=group)
    gathered = [] if rank == last else None
    dist.gather(of(mine), gathered, last, group=group)
    if rank == last:
        found["gather"] = gathered
    part = paddle.empty_like(of(mine))
    dist.scatter(part, [of(mine) + i for i in range(size)] if rank == last else None, last, group=group)
    found["scatter"] = [part]
    dist.barrier(group=group)
    return found


def same_as_gloo():
    """Every collective that Paddle's Gloo has gives what it gives, for each type. Nothing of Paddle's is replaced."""
    assert dist.get_backend() == "GLOO", dist.get_backend()
    ours = argosy.paddle.new_group()
    assert dist.get_backend(ours) == "ARGOSY", dist.get_backend(ours)
    compared = 0
    for dtype in TYPES:
        mine = numbers(dtype, dist.get_rank())
        found, expected = results(mine, ours), results(mine, None)
        assert found.keys() == expected.keys()
        for name, tensors in expected.items():
            assert len(found[name]) == len(tensors), name
            for our, their in zip(found[name], tensors):
                assert our.dtype == their.dtype, (name, our, their)
                same(our, their.numpy())
                compared += 1
    print("compared", compared)


def collectives():
    """All collectives beside numbers, in every form and type that Paddle's Python has."""
    rank, size = rank_and_size()
    total = size * (size + 1) // 2
    for dtype in TYPES + ["float16", "bfloat16"]:
        tensor = paddle.full([5], rank + 1).astype(dtype)
        dist.all_reduce(tensor)
        same(tensor.astype("float32"), np.full(5, total))
    truth = of(np.array([rank == 0, False, True]))
    dist.all_reduce(truth)
    same(truth, [True, False, True])
    large = paddle.full([1 << 20], float(rank))
    task = dist.all_reduce(large, sync_op=False)
    task.wait()
    assert task.is_completed()
    same(large, np.full(1 << 20, sum(range(size))))
    tensor = of(np.array([1.0 + rank]))
    dist.stream.all_reduce(tensor, use_calc_stream=True)
    same(tensor, [total])
    part = paddle.zeros([2])
    dist.reduce_scatter(part, [paddle.full([2], float(rank + i)) for i in range(size)])
    same(part, np.full(2, size * rank + sum(range(size))))
    part = paddle.zeros([2])
    whole = of(np.repeat(np.arange(size, dtype="float32"), 2) + rank)
    dist.stream.reduce_scatter(part, whole, sync_op=False).wait()
    same(part, np.full(2, size * rank + sum(range(size))))
    whole = paddle.zeros([2 * size])
    dist.stream.all_gather(whole, paddle.full([2], float(rank)))
    same(whole, np.repeat(np.arange(size), 2))
    number = paddle.to_tensor(float(rank))  # without dimensions
    dist.all_reduce(number)
    same(number, sum(range(size)))
    nothing = paddle.zeros([0])
    dist.all_reduce(nothing)
    assert nothing.shape == [0], nothing
    complex_number = of(np.array([1 + 2j]) * (rank + 1))
    dist.broadcast(complex_number, size - 1)
    same(complex_number, np.array([1 + 2j]) * size)
    objects = []
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * 10 * rank})
    assert [one["rank"] for one in objects] == list(range(size)), objects
    told = [("rank", rank)]
    dist.broadcast_object_list(told, src=1)
    assert told == [("rank", 1)], told
    print("done")


def exchanges():
    """all_to_all of lists and of one tensor, in equal parts and in others."""
    rank, size = rank_and_size()
    got = []
    dist.alltoall(got, [paddle.full([2, 3], float(10 * rank + to)) for to in range(size)])
    for other, tensor in enumerate(got):
        same(tensor, np.full((2, 3), 10 * other + rank))
    if not paddle.__version__.startswith("3.0."):  # which puts the parts together, and wants one shape
        got = [paddle.zeros([size, other + 1]) for other in range(size)]
        dist.alltoall(got, [paddle.full([size, rank + 1], float(rank)) for _ in range(size)])
        for other, tensor in enumerate(got):
            same(tensor, np.full((size, other + 1), other))
    even = paddle.zeros([size])
    dist.alltoall_single(even, of(np.arange(size, dtype="float32") + 10 * rank))
    same(even, np.arange(size) * 10 + rank)
    rows = [rank + other for other in range(size)]  # rank i sends i + j rows to rank j
    got = paddle.zeros([sum(rows), 2])
    dist.alltoall_single(got, paddle.full([sum(rows), 2], float(rank)), rows, rows)
    same(got, np.concatenate([np.full((rank + other, 2), other) for other in range(size)]))
    print("done")


def messages():
    """isend and irecv, one after another and at once."""
    rank, size = rank_and_size()
    before, after = (rank - 1) % size, (rank + 1) % size
    got = [paddle.zeros([3]) for _ in range(2)]
    tasks = [dist.irecv(tensor, before) for tensor in got]
    tasks += [dist.isend(paddle.full([3], float(10 * rank + i)), after) for i in range(2)]
    for task in tasks:
        task.wait()
    for i, tensor in enumerate(got):
        same(tensor, np.full(3, 10 * before + i))
    other = paddle.zeros([3])
    for task in dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, paddle.full([3], float(rank)), after), dist.P2POp(dist.irecv, other, before)]
    ):
        task.wait()
    same(other, np.full(3, before))
    print("done")


def parts_of_the_world():
    """Groups of some ranks."""
    rank, size = rank_and_size()
    evens = dist.new_group(list(range(0, size, 2)))
    assert type(evens.process_group).__name__ == ("ProcessGroupArgosy" if rank % 2 == 0 else "NoneType")
    ours = argosy.paddle.new_group([0, size - 1])
    for group in (evens, ours):
        if rank in group.ranks:
            tensor = paddle.to_tensor([rank])
            dist.all_reduce(tensor, group=group)
            same(tensor, [sum(group.ranks)])
            dist.broadcast(tensor, group.ranks[-1], group=group)
    dist.destroy_process_group(evens)
    dist.barrier()
    print("done")


class Net(nn.Layer):
    """With a layer that no gradient reaches, where `unused` says so."""

    def __init__(self, unused):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 10))
        if unused:
            self.never = nn.Linear(4, 4)

    def forward(self, x):
        return self.layers(x)


def trained(group=None, unused=False):
    """The weights after some steps. Ranks start apart; DataParallel gives them those of the first."""
    paddle.seed(5 + dist.get_rank())
    # Small buckets: several sums are on their way at once.
    model = paddle.DataParallel(
        Net(unused), group=group, find_unused_parameters=unused, comm_buffer_size=0.001, last_comm_buffer_size=0.001
    )
    optimizer = paddle.optimizer.AdamW(1e-2, parameters=model.parameters())
    for _ in range(10):
        loss = nn.functional.cross_entropy(model(paddle.randn([32, 16])), paddle.randint(0, 10, [32]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    return np.concatenate([parameter.numpy().ravel() for parameter in model.parameters()])


def data_parallel_beside_gloo():
    """DataParallel trains as over Gloo: to the bit on two ranks, whose sums have one order only."""
    for unused in (False, True):
        ours, theirs = trained(argosy.paddle.new_group(), unused), trained(None, unused)
        if dist.get_world_size() == 2:
            assert np.array_equal(ours, theirs), np.abs(ours - theirs).max()
        else:
            assert np.allclose(ours, theirs, atol=1e-4), np.abs(ours - theirs).max()
    print("trained alike")


def print_weights():
    weights = b"".join(trained(None, unused).tobytes() for unused in (False, True))
    print("weights", hashlib.sha256(weights).hexdigest())


def trained_by_gloo():
    print_weights()


def trained_by_argosy():
    assert dist.get_backend() == "ARGOSY"
    print_weights()


def bits():
    """A sum whose bits depend on its order: the test compares transports."""
    generator = np.random.default_rng(7 + dist.get_rank())
    tensor = of((generator.standard_normal(10_001) * 10.0 ** generator.integers(-6, 7, 10_001)).astype("float32"))
    dist.all_reduce(tensor)
    print("bits", hashlib.sha256(tensor.numpy().tobytes()).hexdigest())


def fleet():
    """Installed before fleet.init(), too."""
    from paddle.distributed import fleet as fleets

    fleets.init(is_collective=True)
    assert dist.get_backend() == "ARGOSY", dist.get_backend()
    model = nn.Linear(3, 2)
    optimizer = fleets.distributed_optimizer(paddle.optimizer.SGD(0.1, parameters=model.parameters()))
    model = fleets.distributed_model(model)
    model(paddle.full([1, 3], 1.0 + dist.get_rank())).sum().backward()
    size = dist.get_world_size()
    same(model._layers.weight.grad, np.full((3, 2), (size + 1) / 2))
    optimizer.step()
    print("done")


def everybody_asked():
    """Rank 0 returns when all who live have called this: the store ends with it."""
    store, (rank, size) = collective._default_store, rank_and_size()
    store.set(f"asked {rank}", "")
    if rank == 0:
        for other in range(size - 1):
            store.wait(f"asked {other}")


def death():
    """The last rank dies amid a training: all others name it, in an exception out of backward()."""
    rank, size = rank_and_size()
    model = paddle.DataParallel(nn.Linear(3, 2))
    if rank == size - 1:
        os._exit(3)
    try:
        model(paddle.ones([1, 3])).sum().backward()
    except RuntimeError as error:
        assert f"rank {size - 1} died" in str(error), error
        last = argosy.paddle.flight_record()[-1]
        assert last["op"] == "all_reduce" and last["state"] == "failed", last
        print("named", flush=True)
        everybody_asked()
        os._exit(0)
    raise AssertionError("the backward() with a dead rank has ended well")


def death_in_a_part():
    """In a group the error has the number in the job, too."""
    rank, size = rank_and_size()
    group = dist.new_group(list(range(1, size)))
    ours = argosy.paddle.new_group(list(range(1, size)))
    if rank == size - 1:
        os._exit(3)
    for one in (group, ours) if rank > 0 else ():
        try:
            dist.all_reduce(paddle.ones([1]), group=one)
        except RuntimeError as error:
            assert f"rank {size - 2} (world rank {size - 1}) died" in str(error), error
        else:
            raise AssertionError("the all_reduce with a dead rank has ended well")
    print("named", flush=True)
    everybody_asked()
    os._exit(0)


def refused(call, words, kind=ValueError):
    try:
        call()
    except (RuntimeError, ValueError) as error:
        assert type(error) is kind and words in str(error), repr(error)
    else:
        raise AssertionError(f"expected: {words}")


def misuse():
    """What cannot work says so at the call, and the group goes on."""
    rank, size = rank_and_size()
    ones = paddle.ones([2])
    group = collective._get_default_group().process_group
    several = of(np.ones(2 * size, "float32"))
    for call, words in [
        (lambda: dist.all_reduce(ones.astype("int16")), "expected float32"),
        (lambda: dist.all_reduce(of(np.array([1j]))), "expected float32"),
        (lambda: group.broadcast(ones, 9, True), "there is no rank 9"),
        (lambda: dist.stream.all_gather(several, paddle.ones([3])), "as many bytes"),
        (lambda: dist.stream.reduce_scatter(paddle.ones([3]), several), "as many elements"),
        (lambda: group.send(ones, rank, True), "is this rank itself"),
        (lambda: group.recv(ones, size, True), "there is no rank"),
        (lambda: dist.alltoall([ones] * size, [paddle.ones([3])] * size), "this rank sends itself"),
        (lambda: dist.alltoall_single(several, several, [1] * size, [2] * size), "add up to"),
        (lambda: argosy.paddle.new_group([0, 99]), "expected some of the ranks [0, 1], each once"),
    ]:
        refused(call, words)
    refused(argosy.paddle.install, "call install() before", RuntimeError)
    assert argosy.paddle.flight_record(argosy.paddle.new_group([rank])) == []
    dist.all_reduce(ones)
    same(ones, [size, size])
    print("done")


def main():
    job = sys.argv[1]
    if job in BESIDE_GLOO:
        os.environ["PADDLE_DISTRI_BACKEND"] = "gloo"
    else:
        argosy.paddle.install(timeout=timedelta(seconds=30))
    if job != "fleet":
        dist.init_parallel_env()
    globals()[job]()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
