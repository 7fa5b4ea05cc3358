"""Runs the tests of one module, each in a process of its own with a deadline, and writes what became of them.

The module is imported once; every test, and every rank of it, is forked from that process. PyTorch starts its ranks by
"spawn", which imports PyTorch anew in each of them: four seconds a rank, where a fork takes none. The process that
forks has made no group and no tensor. `--start spawn` starts them as PyTorch does.
"""

import argparse
import ctypes
import importlib.util
import json
import multiprocessing
import os
import re
import select
import signal
import sys
import tempfile
import time
import traceback
import unittest
from pathlib import Path

SMALL = "Skipped due to small world size."
LARGE_WORLD = "8"
NO_RANKS = "it wants as many ranks as there are devices, and there are none"
PR_SET_CHILD_SUBREAPER = 36


def load(path):
    """The module at a path, under the name by which ranks that are spawned find it."""
    path = Path(path).resolve()
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def flat(suite):
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from flat(one)
        else:
            yield one


def start_ranks(how):
    """Has PyTorch's classes start their ranks so. A test that wants a rank for each device, of none, tests nothing."""
    from torch.testing._internal import common_distributed

    def spawn(self):
        if int(self.world_size) == 0:
            self.skipTest(NO_RANKS)
        self._start_processes(multiprocessing.get_context(how).Process)

    common_distributed.MultiProcessTestCase._spawn_processes = spawn


def last_lines(text, count=4):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return "\n".join(line[:300] for line in lines[-count:])


def verdict(result):
    if result.failures or result.errors:
        return "failed", last_lines((result.failures + result.errors)[0][1])
    if result.unexpectedSuccesses:
        return "failed", "passed where a failure was expected"
    if result.skipped:
        return "skipped", result.skipped[0][1]
    return "passed", ""


def judge(test):
    result = unittest.TestResult()
    try:
        unittest.TestSuite([test]).run(result)
    except SystemExit as end:
        return "failed", f"left with exit code {end.code}"
    except BaseException:
        return "failed", last_lines(traceback.format_exc())
    for _, text in result.failures + result.errors:
        print(text, file=sys.stderr)
    return verdict(result)


class Run:
    """One test that is running: its process, its log and what it has said so far."""

    def __init__(self, name, test, logs, world):
        self.name, self.test, self.world = name, test, world
        self.log = Path(logs) / (re.sub(r"[^\w.-]", "_", name)[-180:] + ".log")
        self.witness = tempfile.NamedTemporaryFile(prefix="groups")
        self.began = time.monotonic()
        self.said = b""
        self.reads, writes = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._child(writes)
            finally:
                os._exit(1)  # whatever comes, what follows is the nursery's
        os.close(writes)

    def _child(self, writes):
        os.setsid()
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ["ARGOSY_TEST_WITNESS"] = self.witness.name
        if self.world:
            os.environ["WORLD_SIZE"] = self.world
        os.write(writes, (json.dumps(judge(self.test)) + "\n").encode())
        os._exit(0)

    def hear(self):
        """True once the test has said its verdict or gone without one."""
        chunk = os.read(self.reads, 65536)
        self.said += chunk
        return not chunk or self.said.endswith(b"\n")

    def late(self, deadline):
        return time.monotonic() - self.began > deadline

    def end(self, deadline):
        """Ends all processes of the test and returns its entry of the table."""
        seconds = time.monotonic() - self.began
        kill_group(self.pid)
        os.close(self.reads)
        os.waitpid(self.pid, 0)
        outcome, reason = self._verdict(deadline)
        groups = os.path.getsize(self.witness.name)
        self.witness.close()
        if outcome != "failed":
            self.log.unlink(missing_ok=True)
        return {"outcome": outcome, "seconds": round(seconds, 2), "reason": reason, "groups": groups}

    def _verdict(self, deadline):
        if self.said.endswith(b"\n"):
            return json.loads(self.said)
        if self.late(deadline):
            return "failed", f"timeout: no end within {deadline:.0f} s"
        return "failed", "its process ended without a verdict"


def kill_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def adopt_orphans():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_orphans(running):
    """Ranks that left their test's process group come to this process when the test ends."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    for pid in map(int, children):
        if pid not in running:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


class Nursery:
    def __init__(self, tests, options, report):
        self.waiting = list(tests.items())
        self.tests, self.options, self.report = tests, options, report
        self.running = []

    def run(self):
        while self.waiting or self.running:
            while self.waiting and len(self.running) < self.options.at_once:
                self._start(*self.waiting.pop(0))
            heard = select.select([run.reads for run in self.running], [], [], 0.5)[0]
            for run in list(self.running):
                if (run.reads in heard and run.hear()) or run.late(self.options.deadline):
                    self._finish(run)

    def _start(self, name, test, world=None):
        self.running.append(Run(name, test, self.options.logs, world))

    def _finish(self, run):
        self.running.remove(run)
        entry = run.end(self.options.deadline)
        end_orphans({other.pid for other in self.running})
        if entry["reason"] == SMALL and not run.world:
            self._start(run.name, run.test, LARGE_WORLD)
        else:
            self.report(run.name, entry | ({"world": int(run.world)} if run.world else {}))


def chosen(module, options):
    """Test names, as MODULE's tests are found by unittest, to tests; those that the patterns choose."""
    tests = {}
    for test in flat(unittest.defaultTestLoader.loadTestsFromModule(module)):
        name = ".".join(test.id().split(".")[-2:])
        if not options.only or any(re.search(pattern, name) for pattern in options.only):
            tests[name] = test
    return tests


def reporter(options):
    results = open(options.results, "a")

    def report(name, entry):
        named = f"{options.name}::{name}"
        print(f"{entry['outcome']:8}{entry['seconds']:8.1f} s  {named}", flush=True)
        print(json.dumps({named: entry}), file=results, flush=True)

    return report


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", help="the file of the tests")
    parser.add_argument("--name", required=True, help="stands before the tests' names")
    parser.add_argument("--results", required=True, help="gets one line of JSON for each test")
    parser.add_argument("--logs", required=True, help="a folder that gets what failed tests printed")
    parser.add_argument("--deadline", type=float, default=120)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--start", choices=["fork", "spawn"], default="fork")
    parser.add_argument("--only", action="append", default=[], help="a pattern of names; more than one may be given")
    return parser.parse_args()


def main():
    options = arguments()
    report = reporter(options)
    began = time.monotonic()
    try:
        module = load(options.module)
        tests = chosen(module, options)
    except BaseException:
        reason = last_lines(traceback.format_exc())
        report("import", {"outcome": "failed", "seconds": round(time.monotonic() - began, 2), "reason": reason})
        return
    start_ranks(options.start)
    adopt_orphans()
    Nursery(tests, options, report).run()


if __name__ == "__main__":
    main()
