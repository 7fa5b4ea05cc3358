"""Paddle's process groups over Argosy, for tensors on the CPU.

    import argosy.paddle
    argosy.paddle.install()
    paddle.distributed.init_parallel_env()

Ranks of a host meet in shared memory; sums are the same to the bit on every run and over every transport; errors name
the rank that caused them.
"""

import json
import os
from datetime import timedelta

import paddle
from paddle.distributed import collective, parallel
from paddle.distributed.communication import group as groups

from . import _compiled

__all__ = ["flight_record", "install", "new_group"]

_TIMEOUT = timedelta(minutes=30)  # Paddle's


_C = _compiled.load(__name__, "Paddle", paddle.__version__)
_paddles = collective._new_process_group_impl


def _towards():
    """A host that all ranks reach: the one of Paddle's store."""
    endpoints = os.environ.get("PADDLE_MASTER") or os.environ.get("PADDLE_TRAINER_ENDPOINTS", "")
    return os.environ.get("MASTER_ADDR") or endpoints.split(",")[0].rpartition(":")[0]


def _create(store, rank, size, group_id, timeout):
    return _C.ProcessGroupArgosy(
        store,
        rank,
        size,
        id=group_id,
        world_rank=parallel.ParallelEnv().rank,
        towards=_towards(),
        timeout=timeout.total_seconds(),
    )


def install(timeout=_TIMEOUT):
    """The groups that Paddle would make of its Gloo are Argosy's from now on: that of init_parallel_env() or
    fleet.init(), which are called after this, and those of new_group(). `timeout` is for each operation.
    """
    if paddle.distributed.is_initialized():
        raise RuntimeError("argosy.paddle: call install() before init_parallel_env() or fleet.init()")
    if os.environ.get("PADDLE_DISTRI_BACKEND", "auto") == "auto":
        os.environ["PADDLE_DISTRI_BACKEND"] = "gloo"  # else Paddle makes no process group on the CPU

    def new_process_group(backend, store, rank, world_size, group_name, pg_options, group_id=0, *others, **named):
        if backend == "gloo":
            return _create(store, rank, world_size, group_id, timeout)
        return _paddles(backend, store, rank, world_size, group_name, pg_options, group_id, *others, **named)

    # Paddle has nowhere to register a process group; this is the one function that makes them.
    collective._new_process_group_impl = new_process_group
    parallel._new_process_group_impl = new_process_group


def new_group(ranks=None, timeout=_TIMEOUT):
    """A group of Argosy's beside Paddle's own, to be given as `group=`: nothing of Paddle's is replaced for it. All
    ranks call it after init_parallel_env(), as they would call paddle.distributed.new_group().
    """
    world = groups._get_global_group()
    ranks = sorted(world.ranks if ranks is None else ranks)
    if not ranks or len(set(ranks)) < len(ranks) or not set(ranks) <= set(world.ranks):
        raise ValueError(f"argosy.paddle: expected some of the ranks {world.ranks}, each once, got {ranks}")
    group_id = collective._new_ring_id()
    rank = ranks.index(world.rank) if world.rank in ranks else -1
    made = None
    if rank >= 0 and len(ranks) > 1:
        made = _create(collective._default_store, rank, len(ranks), group_id, timeout)
    group = groups.Group(rank, group_id, ranks, pg=made, name=f"argosy{group_id}")
    groups._add_new_group(group)
    return group


def flight_record(group=None):
    """The newest operations of a group, oldest first: a list of dictionaries."""
    group = group or groups._get_global_group()
    if group.process_group is None:  # of one rank, or not of this one
        return []
    return json.loads(group.process_group.flight_record())["operations"]
