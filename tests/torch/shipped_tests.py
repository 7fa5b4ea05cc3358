"""The tests that PyTorch ships in its wheel and that run on a CPU backend, as classes that unittest finds.

DistributedTest is the whole suite of a backend. Of the suites of torch.distributed.rpc those tests are here that make
a process group beside their RPC agents. The rest of torch.testing._internal.distributed has base classes only, whose
tests are in PyTorch's test folder (see public_suite.sh).
"""

import os
import tempfile

BACKEND = "gloo"  # what the suite asks for; the shim has it made by the backend under test


def _prepare():
    """What the suite reads from the environment when it is imported."""
    folder = tempfile.mkdtemp(prefix="argosy-torch-")
    os.environ.setdefault("WORLD_SIZE", "4")
    os.environ["BACKEND"] = BACKEND
    os.environ["TEMP_DIR"] = folder
    os.environ["INIT_METHOD"] = f"file://{folder}/init"


if "TEMP_DIR" not in os.environ:  # ranks that are spawned have it from the test that starts them
    _prepare()

import torch  # noqa: E402
from torch.testing._internal.distributed import distributed_test, rpc_utils  # noqa: E402
from torch.testing._internal.distributed.ddp_under_dist_autograd_test import (  # noqa: E402
    DdpComparisonTest,
    DdpUnderDistAutogradTest,
)
from torch.testing._internal.distributed.rpc.rpc_test import RpcTest  # noqa: E402
from torch.testing._internal.distributed.rpc.tensorpipe_rpc_agent_test_fixture import (  # noqa: E402
    TensorPipeRpcAgentTestFixture,
)

RPC_WITH_GROUPS = {
    "test_deadlock",
    "test_dynamic_and_static_init_rpc_together",
    "test_init_pg_then_rpc",
    "test_init_rpc_then_pg",
    "test_pg_init_no_rpc_init",
}


class DistributedSuite(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._skip_where_devices_lack()
        distributed_test.INIT_METHOD = os.environ["INIT_METHOD"]
        self._spawn_processes()

    def _skip_where_devices_lack(self):
        """As each rank would by itself, before there are any: a third of the suite wants accelerators."""
        needed = getattr(getattr(type(self), self._testMethodName), "_min_gpus_required", 0)
        if needed > torch.accelerator.device_count():
            self.skipTest(f"Need at least {needed} accelerator devices")


def admit(reason):
    """Tests that the suite skips for that reason, although Gloo, too, has come to do what they ask for."""
    for name in dir(DistributedSuite):
        test = getattr(DistributedSuite, name)
        if name.startswith("test_") and reason in getattr(test, "__unittest_skip_why__", ""):
            test.__unittest_skip__ = False


admit("Only MPI supports")  # all_to_all of tensors on the CPU


class _Groups(RpcTest):
    """RpcTest without the tests that make no process group."""


for _name in dir(_Groups):
    if _name.startswith("test_") and _name not in RPC_WITH_GROUPS:
        setattr(_Groups, _name, None)

globals().update(
    rpc_utils.generate_tests(
        "TensorPipe", TensorPipeRpcAgentTestFixture, [DdpUnderDistAutogradTest, DdpComparisonTest, _Groups], __name__
    )
)
del DdpComparisonTest, DdpUnderDistAutogradTest, RpcTest, _Groups
