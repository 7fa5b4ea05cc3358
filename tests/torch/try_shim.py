"""Checks the shim: what is asked for as Gloo is made by the backend under test, and by nothing else."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import shim

HERE = Path(__file__).parent

MARKED = '''
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d


def create(options, _):
    return c10d.ProcessGroupGloo(options.store, options.group_rank, options.group_size, timeout=options.timeout)


dist.Backend.register_backend("marked", create, extended_api=True, devices=["cpu"])
'''

TRIAL = '''
import torch
import torch.distributed as dist

dist.init_process_group(ASKED, store=dist.HashStore(), rank=0, world_size=1)
real = dist.distributed_c10d.get_backend()
told = dist.get_backend()
tensor = torch.ones(2)
dist.all_reduce(tensor)
group = dist.new_group([0])
print(real, told == "gloo", dist.distributed_c10d.get_backend(group), tensor.sum().item())
dist.destroy_process_group()
'''


def named(backend):
    return mock.patch.dict(os.environ, ARGOSY_TEST_BACKEND=backend)


class StandIn(unittest.TestCase):
    def test_gloo_on_the_cpu_is_replaced_and_nothing_else(self):
        with named("marked"):
            self.assertEqual(shim.stand_in("gloo"), "marked")
            self.assertEqual(shim.stand_in("GLOO"), "marked")
            self.assertEqual(shim.stand_in("cpu:gloo,cuda:nccl"), "cpu:marked,cuda:nccl")
            self.assertEqual(shim.stand_in("cuda:gloo"), "cuda:gloo")
            self.assertEqual(shim.stand_in("nccl"), "nccl")
            self.assertIsNone(shim.stand_in(None))

    def test_nothing_is_replaced_for_gloo(self):
        with named("gloo"):
            self.assertEqual(shim.stand_in("cpu:gloo,cuda:nccl"), "cpu:gloo,cuda:nccl")
            self.assertFalse(shim.active())

    def test_a_name_equals_itself_and_what_was_asked_for(self):
        name = shim.Name("marked")
        self.assertTrue(name == "marked" and name == "gloo")
        self.assertTrue(name != "nccl")
        self.assertNotIn(name, {"gloo"})


class Groups(unittest.TestCase):
    """Each trial is a process of its own: the shim acts while PyTorch is imported."""

    def trial(self, backend, asked):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "marked_backend.py").write_text(MARKED)
            witness = Path(folder) / "witness"
            witness.touch()
            variables = {
                "PYTHONPATH": os.pathsep.join([str(HERE / "site"), folder]),
                "ARGOSY_TEST_BACKEND": backend,
                "ARGOSY_TEST_MODULE": "marked_backend",
                "ARGOSY_TEST_WITNESS": str(witness),
            }
            program = TRIAL.replace("ASKED", repr(asked))
            said = subprocess.check_output([sys.executable, "-c", program], env=os.environ | variables, text=True)
            return said.split(), witness.stat().st_size

    def test_groups_are_of_the_backend_under_test(self):
        for asked in ("gloo", "cpu:gloo", None):
            said, made = self.trial("marked", asked)
            self.assertEqual(said[3], "2.0")
            self.assertEqual(made, 2, asked)

    def test_the_name_told_is_the_one_asked_for(self):
        self.assertEqual(self.trial("marked", "gloo")[0][:3], ["marked", "True", "marked"])

    def test_gloo_stays_gloo(self):
        said, made = self.trial("gloo", "gloo")
        self.assertEqual(said[:3], ["gloo", "True", "gloo"])
        self.assertEqual(made, 0)


if __name__ == "__main__":
    unittest.main()
