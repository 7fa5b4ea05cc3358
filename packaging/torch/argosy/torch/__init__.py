"""The backend "argosy" of torch.distributed, for tensors on the CPU.

    import argosy.torch
    torch.distributed.init_process_group("argosy")

Ranks of one host meet in shared memory, hosts by Gloo. Sums have one order, whatever the spread of the ranks; errors
name the rank that caused them.
"""

import inspect
import json
import os

import torch
import torch.distributed as dist

from . import _compiled

__all__ = ["flight_record"]

_C = _compiled.load(__name__, "PyTorch", torch.__version__)


def _towards(store):
    """A host that all ranks reach: the one of PyTorch's store."""
    while True:
        if isinstance(store, dist.TCPStore):
            return store.host
        inner = getattr(store, "underlying_store", None)
        if inner is None:
            return os.environ.get("MASTER_ADDR", "")
        store = inner


def _name(group_id):
    return "world" if group_id in ("", "0", "default_pg") else f"group {group_id}"


def _offer_memory():
    """DistributedDataParallel takes its buckets from the backend where this is 0. NCCL would give its own too: where the
    process has a GPU, that stays for its user to decide."""
    if not torch.cuda.is_available():
        os.environ.setdefault("DDP_DISABLE_COMM_MEM", "0")


def _create(store, rank, size, timeout, group_id, world_ranks):
    _offer_memory()
    return _C.ProcessGroupArgosy(
        store,
        rank,
        size,
        name=_name(group_id),
        towards=_towards(store),
        timeout=timeout.total_seconds(),
        world_ranks=world_ranks,
    )


def _create_by_options(options, _backend_options=None):
    world_ranks = getattr(options, "global_ranks_in_group", None)  # before PyTorch 2 nobody tells
    return _create(
        options.store,
        options.group_rank,
        options.group_size,
        options.timeout,
        options.group_id,
        world_ranks=list(world_ranks or []),  # of the world: none
    )


def _register():
    register = dist.Backend.register_backend
    known = inspect.signature(register).parameters
    devices = {"devices": ["cpu"]} if "devices" in known else {}  # from PyTorch 2.0 on
    register("argosy", _create_by_options, extended_api=True, **devices)


def flight_record(group=None):
    """The newest operations of a group, oldest first: a list of dictionaries. Not after destroy_process_group()."""
    if group is dist.GroupMember.NON_GROUP_MEMBER:
        raise RuntimeError("argosy.torch: this rank is not in the group, which has run nothing here")
    group = group or dist.group.WORLD
    if group is None:
        raise RuntimeError("argosy.torch: there is no process group, or none any more")
    backend = group._get_backend(torch.device("cpu")) if hasattr(group, "_get_backend") else group
    backend = getattr(backend, "wrapped_pg", backend)  # with TORCH_DISTRIBUTED_DEBUG=DETAIL
    if not isinstance(backend, _C.ProcessGroupArgosy):
        raise RuntimeError(f"argosy.torch: the group's backend for tensors on the CPU is {backend.name()}, not argosy")
    return json.loads(backend.flight_record())["operations"]


_register()
