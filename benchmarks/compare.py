#!/usr/bin/env python3
"""Measures Argosy and, when a Python with torch is given, the same work in PyTorch DDP.

    python3 benchmarks/compare.py --bin build/release/bin [--peers /path/to/python]

Programs run interleaved: one run of each variant per repetition, in turns. Warm-up is dropped, a
run counts as the median of its samples, and a ratio is taken within a repetition. A wrong result
(a loss that does not fall, ranks that differ, a wrong sum) voids the number. See README.md.

A tool for people and CI; the library does not need it. Standard library only.
"""

import argparse
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import plots
import report
from suites import SUITES

HERE = Path(__file__).resolve().parent


class RunFailed(Exception):
    pass


def run(command, env, timeout):
    """Runs one job; gives its {"bench": …} lines and its wall time in milliseconds."""
    start = time.perf_counter()
    job = subprocess.Popen(
        [str(part) for part in command],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        out, err = job.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGTERM)  # hosts.py takes its namespaces along
        try:
            job.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            job.communicate()
        raise RunFailed(f"still running after {timeout} s") from None
    except KeyboardInterrupt:
        os.killpg(job.pid, signal.SIGTERM)
        raise
    wall_ms = (time.perf_counter() - start) * 1e3
    if job.returncode != 0:
        tail = "\n".join((out + err).strip().splitlines()[-15:])
        raise RunFailed(f"exit code {job.returncode}:\n{tail}")
    # The launcher puts "[rank 0] " in front of a line.
    lines = [line[line.index('{"bench"') :] for line in out.splitlines() if '{"bench"' in line]
    return {"objects": [json.loads(line) for line in lines], "wall_ms": wall_ms}


def run_variant(case, variant, args, env):
    """One run. A peer's crash is repeated twice and counted; one of ours is a finding, and stands."""
    for attempts_left in (0,) if variant.startswith("argosy") else (2, 1, 0):
        try:
            return run(case.variants[variant], env, args.timeout)
        except RunFailed as error:
            if attempts_left == 0:
                raise
            label = f"{case.suite}.{case.name}.{variant}"
            args.repeated[label] = args.repeated.get(label, 0) + 1
            print(f"  {label} crashed and runs again: {str(error).splitlines()[0]}", file=sys.stderr)


def measure(case, args, env):
    """All runs of a case: {variant: [run, …]} and {variant: why it has none}."""
    runs = {variant: [] for variant in case.variants}
    failures = {}
    reps = args.reps if args.reps_given else max(args.reps, case.least_reps)
    for repetition in range(-case.warmup_runs, reps):
        order = list(case.variants)
        shift = repetition % len(order)
        for variant in order[shift:] + order[:shift]:
            if variant in failures:
                continue
            try:
                result = run_variant(case, variant, args, env)
            except (RunFailed, OSError, json.JSONDecodeError) as error:
                failures[variant] = str(error)
                print(f"  {variant} failed: {error}", file=sys.stderr)
                continue
            if repetition >= 0:
                runs[variant].append(result)
        print(".", end="", flush=True)
    print(f" {case.suite}.{case.name}")
    return runs, failures


def unpack_data(folder, scratch):
    """torchvision's folder, with the files unpacked as its download leaves them."""
    raw = Path(scratch) / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    for packed in sorted(Path(folder).glob("*-ubyte.gz")):
        with gzip.open(packed) as source, open(raw / packed.stem, "wb") as target:
            shutil.copyfileobj(source, target)
    return Path(scratch)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, default=Path("build/release/bin"), help="our programs")
    parser.add_argument("--peers", help="a Python with torch (and torchvision, paddle)")
    parser.add_argument("--suites", nargs="+", choices=[*SUITES, "all"], default=["all"])
    parser.add_argument("--only", nargs="+", default=[], help="names of cases; others are left out")
    parser.add_argument(
        "--engine", choices=["debian", "own"], default="debian", help="whose libtorch we run on: sets targets"
    )
    parser.add_argument("--reps", type=int, help="repetitions, at least 1 (default 5, 30 where differences are small)")
    parser.add_argument("--nproc", type=int, default=2, help="ranks (default 2)")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument(
        "--pictures", type=Path, default=HERE.parent.parent / "shared" / "data", help="data sets of the suite input"
    )
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one run")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="where files go")
    args = parser.parse_args()
    args.reps_given = args.reps is not None
    if not args.reps_given:
        args.reps = 5
    if args.reps < 1 or args.nproc < 1:
        parser.error("--reps and --nproc must be at least 1")
    if args.peers and "/" in args.peers:
        args.peers = os.path.abspath(args.peers)  # programs run in folders of their own; no link is followed
    args.suites = list(SUITES) if "all" in args.suites else args.suites
    if not (args.bin / "argosy").exists():
        parser.error(f"no programs in {args.bin}: run `make bench`, or give --bin")
    return args


def main():
    args = parse_arguments()
    # One thread per rank on both sides, whatever the machine has.
    env = dict(os.environ, OMP_NUM_THREADS="1", TORCHELASTIC_ERROR_FILE="")
    if args.reps < 5:
        print(f"note: {args.reps} repetitions are too few to report; take 5 or more")
    if args.peers is None:
        print("note: no peer given (PEERS=<python with torch>): only Argosy's own figures follow")
    args.repeated = {}
    args.load = report.load_at_start()
    args.peer_versions = report.peer_versions(args.peers) if args.peers else {}
    with_images = args.peers and {"epoch", "input"} & set(args.suites)
    if with_images and "torchvision" not in args.peer_versions:
        sys.exit("compare.py: the suites epoch and input need torchvision in the peers' Python too")
    status = 0
    with tempfile.TemporaryDirectory(prefix="argosy-bench-") as scratch:
        args.scratch = Path(scratch)
        args.root = unpack_data(args.data, scratch) if with_images else None
        for suite in args.suites:
            results = []
            for case in SUITES[suite](args):
                if args.only and case.name not in args.only:
                    continue
                if case.prepare and not case.prepare():
                    continue
                runs, failures = measure(case, args, env)
                results.append(report.evaluate(case, runs, failures))
            if results and report.publish(suite, results, args, HERE.parent):
                status = 1
    print(f"pictures of the newest results: {plots.write(args.out)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
