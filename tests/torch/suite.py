"""What the two suites have in common: the environment of a run, its nurseries and the JSON file that it leaves."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import shim

HERE = Path(__file__).parent


def environment(temporary):
    paths = [str(HERE / "site"), os.environ.get("PYTHONPATH", "")]
    kept = {name: value for name, value in os.environ.items() if name != "TEMP_DIR"}
    return kept | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "TMPDIR": temporary,
        "OMP_NUM_THREADS": "1",
        "MASTER_ADDR": "127.0.0.1",
        "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": "100",
        "PYTORCH_DISABLE_RUNNING_SCRIPT_CHK": "1",
        "PYTORCH_PRINT_REPRO_ON_FAILURE": "0",
    }


def versions():
    import torch

    return {"torch": torch.__version__, "torch_commit": torch.version.git_version}


class Suite:
    def __init__(self, out, logs=None):
        self.out = Path(out)
        self.logs = Path(logs or tempfile.mkdtemp(prefix="argosy-torch-logs-"))
        self.logs.mkdir(parents=True, exist_ok=True)
        self.lines = self.out.with_suffix(".lines")
        self.lines.write_text("")
        self.began = time.monotonic()

    def run(self, file, name, options=()):
        """The tests of one file. What they print is kept for those that fail; a verdict each goes to the output."""
        command = [sys.executable, str(HERE / "nursery.py"), str(file), "--name", name]
        command += ["--results", str(self.lines), "--logs", str(self.logs), *options]
        with tempfile.TemporaryDirectory(prefix="argosy-torch-") as temporary:
            ended = subprocess.run(command, env=environment(temporary), stdin=subprocess.DEVNULL)
        if ended.returncode != 0:
            self._broken(name)

    def _broken(self, name):
        entry = {"outcome": "failed", "seconds": 0, "reason": "the process that runs the file's tests ended"}
        with self.lines.open("a") as file:
            print(json.dumps({f"{name}::run": entry}), file=file)

    def finish(self, **more):
        tests = {}
        for line in self.lines.read_text().splitlines():
            tests |= json.loads(line)
        self.lines.unlink()
        head = {"backend": shim.backend(), **versions(), **more, "seconds": round(time.monotonic() - self.began, 1)}
        self.out.write_text(json.dumps(head | {"tests": dict(sorted(tests.items()))}, indent=1) + "\n")
        counts = Counter(entry["outcome"] for entry in tests.values())
        print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
        print(f"failed tests' output: {self.logs}")
        return tests
