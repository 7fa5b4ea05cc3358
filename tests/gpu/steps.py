"""Training steps of ours and of PyTorch's in turns, for run.sh, which has the sizes.

    steps.py steps|fed --model resnet50 --precision bf16 --device cuda:0 --ours bench_train_step --figures OUT.jsonl ...
    steps.py gpt --model gpt2:vocab_size=50304 ... --ours bench_sharded_step ...

Each round measures each variant once. Ours starts anew each time; PyTorch's processes, which start slowly, stay and
give their memory back after their turn. Rounds end when --seconds are over. "fed": batches are --pictures, read
meanwhile. Exit code: 1 where a variant failed; it is then left out of the rounds that follow.
"""

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time

PEERS_FOLDER = os.path.join(os.path.dirname(__file__), "..", "..", "benchmarks", "peers")
LONGEST_TURN = 240  # seconds; the first of a compiled network is the longest

OURS = {"argosy": []}  # which chooses channels_last by itself
PEERS = {"pytorch": [], "pytorch tuned": ["--tuned"], "pytorch compiled": ["--tuned", "--compile"]}
FED = ("argosy", "pytorch tuned")


class Failed(Exception):
    pass


def read_figures(process):
    """Its next line of figures."""
    watch = threading.Timer(LONGEST_TURN, process.kill)
    watch.start()
    try:
        for line in process.stdout:
            if line.startswith('{"bench"'):
                return json.loads(line)
    finally:
        watch.cancel()
    raise Failed(f"ended with {process.wait()} and no figures, or took {LONGEST_TURN} s")


def last_lines(log):
    with open(log.name, encoding="utf-8", errors="replace") as file:
        return "".join(file.readlines()[-8:])


class Ours:
    """One process for each turn."""

    def __init__(self, args, options, log):
        self.command = [args.ours, *options]
        self.log = log
        self.env = dict(os.environ)
        if args.libraries:
            self.env["LD_LIBRARY_PATH"] = args.libraries

    def turn(self):
        pipe = subprocess.PIPE
        with subprocess.Popen(self.command, stdout=pipe, stderr=self.log, env=self.env, text=True) as process:
            figures = read_figures(process)
            if process.wait(60) != 0:
                raise Failed(f"exit code {process.returncode}")
            return figures

    def end(self):
        pass


class Peer:
    """One process for all turns."""

    def __init__(self, args, options, log):
        self.log = log
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        program = "sharded_step.py" if args.part == "gpt" else "train_step.py"
        job = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(PEERS_FOLDER, program), "--turns", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **job},
            text=True,
        )

    def turn(self):
        try:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(f"ended with {self.process.wait()}") from None
        return read_figures(self.process)

    def end(self):
        with contextlib.suppress(BrokenPipeError):  # it ended by itself
            self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def options_of(args):
    options = ["--device", args.device, "--steps", args.steps, "--warmup", args.warmup, "--batch", args.batch]
    if args.precision == "bf16":
        options += ["--amp", "bf16"]
    if args.part == "gpt":
        return ["--way", "ddp", "--model", args.model, *options]
    if args.part == "fed":
        return [args.model, *options, "--pictures", args.pictures, "--num_workers", args.num_workers]
    return [args.model, *options, "--side", args.side]


def start(args):
    kinds = [(Ours, OURS)] + ([] if args.without_peers else [(Peer, PEERS)])
    options = options_of(args)
    runners = {}
    for kind, variants in kinds:
        for variant, more in variants.items():
            if args.part != "fed" or variant in FED:
                name = f"{args.part}-{args.precision}-{variant.replace(' ', '_')}.log"
                log = open(os.path.join(args.logs, name), "w", encoding="utf-8")
                runners[variant] = kind(args, options + more, log)
    return runners


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["steps", "fed", "gpt"])
    for name in ("model", "precision", "device", "ours", "figures", "logs"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("libraries", "pictures", "side", "num_workers", "batch", "steps", "warmup"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--without_peers", action="store_true")
    args = parser.parse_args()
    end = time.monotonic() + args.seconds
    runners = start(args)
    failed = False
    for number in range(args.rounds + 1):
        if number > 1 and time.monotonic() > end:
            print(f"{args.part} {args.precision}: time for {number - 1} of {args.rounds} rounds")
            break
        for variant, runner in list(runners.items()):
            try:
                figures = runner.turn()
            except Failed as error:
                print(f"{args.part} {args.precision}: {variant}: {error}; its last lines:")
                print(last_lines(runner.log))
                runner.end()
                del runners[variant]
                failed = True
                continue
            if number > 0:  # the first compiles, and warms up
                what = {"part": args.part, "variant": variant, "precision": args.precision, "round": number}
                with open(args.figures, "a", encoding="utf-8") as file:
                    file.write(json.dumps(what | figures) + "\n")
    for runner in runners.values():
        runner.end()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
