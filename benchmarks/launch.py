#!/usr/bin/env python3
"""One figure of a launcher, as {"bench": …} lines for compare.py: launch.py WHAT [--reps N] -- LAUNCHER...

LAUNCHER is a command that starts the two ranks of what is put behind it, for example
`argosy launch --nproc_per_node 2` or `python -m torch.distributed.run --standalone --nproc_per_node 2 --no-python`.
Standard library only.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import hosts as namespaces

# Each rank leaves its pid, by life and number, and sleeps.
RANK = 'me="$PIDS/${TORCHELASTIC_RESTART_COUNT:-0}.${RANK:-$PADDLE_TRAINER_ID}"; ' \
    'echo $$ > "$me.part"; mv "$me.part" "$me"; '
PATIENCE = 60


class Job:
    """A launcher with ranks, in a scratch folder."""

    def __init__(self, launcher, script, folder):
        self.folder = Path(folder)
        rank = self.folder / "rank.sh"  # torchrun reads "$$" in arguments as "$"
        rank.write_text(RANK + script)
        env = dict(os.environ, PIDS=folder, ARGOSY_BENCH_MARK=folder)
        self.process = subprocess.Popen([*launcher, "sh", rank], env=env, cwd=folder,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)

    def pid_of(self, rank, life=0):
        """Waits for it."""
        path = self.folder / f"{life}.{rank}"
        deadline = time.monotonic() + PATIENCE
        while not path.exists():
            if time.monotonic() > deadline:
                raise SystemExit(f"rank {rank} of life {life} did not come")
            time.sleep(0.0005)
        return int(path.read_text())

    def survivors(self):
        """Processes that carry our mark."""
        mark = f"ARGOSY_BENCH_MARK={self.folder}".encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                pass
        return found

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pid in self.survivors():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def killed(launcher, folder):
    """From the death of rank 1 by SIGKILL to the end of the launcher, in ms; all must be gone."""
    job = Job(launcher, "exec sleep 1000", folder)
    try:
        job.pid_of(0)
        victim = job.pid_of(1)
        start = time.perf_counter()
        os.kill(victim, signal.SIGKILL)
        job.process.wait(PATIENCE)
        took = (time.perf_counter() - start) * 1e3
        if job.survivors():
            raise SystemExit("ranks are left")
        return took
    finally:
        job.end()


def respawn(launcher, folder):
    """From the death of rank 1 by SIGKILL to its next life, in ms."""
    job = Job([*launcher[:-1], "--max_restarts=1", launcher[-1]] if launcher[-1] == "--no-python" else
              [*launcher, "--max_restarts=1"], "exec sleep 1000", folder)
    try:
        job.pid_of(0)
        victim = job.pid_of(1)
        start = time.perf_counter()
        os.kill(victim, signal.SIGKILL)
        job.pid_of(1, life=1)
        return (time.perf_counter() - start) * 1e3
    finally:
        job.end()


def peak(launcher, folder):
    """The launcher's own processes at their largest, in MB: what they hold beside the ranks."""
    job = Job(launcher, "exec sleep 1000", folder)
    try:
        ranks = {job.pid_of(0), job.pid_of(1)}
        total = 0
        for pid in [*job.survivors(), job.process.pid]:
            if pid not in ranks:
                for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                    total += int(line.split()[1]) if line.startswith("VmHWM") else 0
                ranks.add(pid)  # once
        return total / 1024
    finally:
        job.end()


def log_rate(launcher, folder, each=100_000_000):
    """What two ranks write, lines of 100 bytes, through the launcher and into its files: MB/s."""
    line = "x" * 99
    start = time.perf_counter()
    subprocess.run([*launcher, "sh", "-c", f"yes {line} | head -c {each}"], cwd=folder, check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return 2 * each / 1e6 / (time.perf_counter() - start)


def log_flood(launcher, folder):
    """So much of it that the disk's cache has to grow by 2 GB."""
    return log_rate(launcher, folder, each=400_000_000)


def orphans(launcher, folder):
    """The launcher is killed by SIGKILL at a random moment; ranks ignore SIGTERM and have children."""
    job = Job(launcher, "trap '' TERM; sleep 1000 & sleep 1000 & wait", folder)
    time.sleep(random.uniform(0, 0.1))
    job.process.kill()
    job.process.wait()
    deadline = time.monotonic() + 5
    while job.survivors() and time.monotonic() < deadline:
        time.sleep(0.005)
    left = len(job.survivors())
    job.end()
    return left


def hosts(launcher, folder):
    """Four network namespaces as hosts, one launcher on each, a job that does nothing: ms; needs root."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with namespaces.network(4) as (names, addresses):
        command = [*launcher, "--ips", ",".join(addresses), "--log_dir=", "true"]
        start = time.perf_counter()
        jobs = []
        try:
            for name in names:
                jobs.append(namespaces.start(name, command, folder, **quiet))
            codes = [job.wait(PATIENCE) for job in jobs]
            took = (time.perf_counter() - start) * 1e3
        finally:
            namespaces.stop(jobs)
        if any(codes):
            raise SystemExit(f"exit codes {codes}")
        return took


FIGURES = {f.__name__: f for f in (killed, respawn, peak, log_rate, log_flood, orphans, hosts)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=FIGURES)
    parser.add_argument("--reps", type=int, default=1)
    own, launcher = sys.argv[1:], []
    if "--" in own:
        own, launcher = own[:own.index("--")], own[own.index("--") + 1:]
    args = parser.parse_args(own)
    samples = []
    for _ in range(args.reps):
        with tempfile.TemporaryDirectory(prefix="argosy-launch-bench-") as folder:
            samples.append(FIGURES[args.what](launcher, folder))
    print(json.dumps({"bench": f"launch.{args.what}", "samples": samples}))


if __name__ == "__main__":
    main()
