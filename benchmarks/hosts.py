#!/usr/bin/env python3
"""Runs a job on several hosts of this machine: network namespaces, joined by links of a stated rate. Needs root.

    python3 benchmarks/hosts.py --hosts 4 --ranks 1 --rate 1gbit --argosy build/release/bin/argosy -- PROGRAM ARGUMENTS

Prints what rank 0 prints; the exit code is the first of a host that is not 0.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile

PATIENCE = 300  # seconds


def _ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _add_host(name, bridge, number, rate):
    _ip("netns", "add", name)
    _ip("-n", name, "link", "set", "lo", "up")
    _ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", f"p{number}", "netns", bridge)
    _ip("-n", name, "addr", "add", f"10.78.0.{number}/24", "dev", "eth0")
    _ip("-n", name, "link", "set", "eth0", "up")
    _ip("-n", bridge, "link", "set", f"p{number}", "master", "br0")
    _ip("-n", bridge, "link", "set", f"p{number}", "up")
    if rate:  # both ways: what the host sends, what it is sent
        for where, device in ((name, "eth0"), (bridge, f"p{number}")):
            shape = ["tc", "-n", where, "qdisc", "add", "dev", device, "root", "tbf"]
            subprocess.run([*shape, "rate", rate, "burst", "256kb", "latency", "50ms"], check=True, capture_output=True)


@contextlib.contextmanager
def network(count, rate=None):
    """Namespaces on one bridge, and their addresses. Gone afterwards, after SIGTERM too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    names = [f"argosy-bench-{os.getpid()}-{i}" for i in range(count)]
    bridge = f"argosy-bench-{os.getpid()}-net"
    try:
        _ip("netns", "add", bridge)
        _ip("-n", bridge, "link", "add", "br0", "type", "bridge")
        _ip("-n", bridge, "link", "set", "br0", "up")
        for number, name in enumerate(names, start=1):
            _add_host(name, bridge, number, rate)
        yield names, [f"10.78.0.{number}" for number in range(1, count + 1)]
    finally:
        for name in [*names, bridge]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def start(name, command, folder, **streams):
    """A launcher on one of the hosts."""
    env = dict(os.environ, ARGOSY_TOKEN="bench")
    return subprocess.Popen(["ip", "netns", "exec", name, *command], cwd=folder, env=env, stdin=subprocess.DEVNULL, **streams)


def stop(jobs):
    """Launchers end their ranks when they are told to; one that does not within 10 s is killed."""
    for job in jobs:
        job.terminate()
    for job in jobs:
        try:
            job.wait(10)
        except subprocess.TimeoutExpired:
            job.kill()
            job.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, required=True)
    parser.add_argument("--ranks", type=int, default=1, help="of each host")
    parser.add_argument("--rate", help="of each host's link, as tc has it: 1gbit; not shaped where it is left out")
    parser.add_argument("--argosy", required=True, help="the launcher")
    own, program = sys.argv[1:], []
    if "--" in own:
        own, program = own[: own.index("--")], own[own.index("--") + 1 :]
    args = parser.parse_args(own)
    if not program:
        parser.error("no program: hosts.py … -- PROGRAM …")
    with network(args.hosts, args.rate) as (names, addresses), tempfile.TemporaryDirectory() as folder:
        launch = [os.path.abspath(args.argosy), "launch", "--ips", ",".join(addresses), "-n", str(args.ranks), "--log_dir="]
        program[0] = os.path.abspath(program[0])
        jobs = []
        try:
            for i, name in enumerate(names):
                streams = {} if i == 0 else {"stdout": subprocess.DEVNULL}
                jobs.append(start(name, [*launch, *program], folder, **streams))
            codes = [job.wait(PATIENCE) for job in jobs]
        finally:
            stop(jobs)
    sys.exit(next((code for code in codes if code != 0), 0))


if __name__ == "__main__":
    main()
