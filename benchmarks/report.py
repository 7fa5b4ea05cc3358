"""Medians, ratios, tables and result files of compare.py."""

import json
import os
import platform
import re
import shlex
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION_KEYS = ("libtorch", "torch", "paddle", "blas", "threads", "memory_kept")


@dataclass
class Spread:
    median: float
    low: float
    high: float

    @staticmethod
    def of(values):
        return Spread(statistics.median(values), min(values), max(values))


@dataclass
class Ratio:
    label: str  # <suite>.<name>.<peer>
    ours: str
    spread: Spread
    target: float  # None: none

    def line(self):
        s = self.spread
        target = "none" if self.target is None else f"<={self.target:g}"
        return f"RATIO {self.label} {s.median:.3f} [{s.low:.3f} {s.high:.3f}] target {target}"


@dataclass
class Limit:
    label: str
    spread: Spread
    unit: str
    sense: str  # "<=" or ">="
    limit: float

    def kept(self):
        return self.spread.median <= self.limit if self.sense == "<=" else self.spread.median >= self.limit

    def line(self):
        s = self.spread
        word = "kept" if self.kept() else "MISSED"
        return (f"LIMIT {self.label} {s.median:.1f} [{s.low:.1f} {s.high:.1f}] {self.unit} "
                f"limit {self.sense}{self.limit:g}: {word}")


@dataclass
class Result:
    """Of one measure."""

    case: str  # suite and name of the case it was measured in
    label: str
    unit: str
    bytes: int
    runs: dict = field(default_factory=dict)  # variant: samples of each run
    spreads: dict = field(default_factory=dict)  # variant: of the runs' medians
    ratios: list = field(default_factory=list)
    limits: list = field(default_factory=list)
    ranks: dict = field(default_factory=dict)  # variant: how many, where it says so
    void: dict = field(default_factory=dict)  # variant: why
    versions: dict = field(default_factory=dict)
    commands: dict = field(default_factory=dict)


def _versions(run):
    """What a program says of itself; paths in the repository without the place of the clone."""
    found = {k: v for o in run["objects"][:1] for k, v in o.items() if k in VERSION_KEYS}
    return {k: v.replace(f"{ROOT}/", "") if isinstance(v, str) else v for k, v in found.items()}


def _ranks(run):
    return next((o["ranks"] for o in run["objects"] if "ranks" in o), None)


def _void(case, runs, failures):
    """Why a variant does not count: each by itself first, then beside those that are right by themselves."""
    void = dict(failures)
    for against in ([], [v for v, r in runs.items() if r]):
        sound = [v for v in against if v not in void]
        for variant in [v for v in runs if v not in void]:
            others = [runs[v][0] for v in sound if v != variant]
            complaints = (_complaint(case, run, others) for run in runs[variant])
            first = next((c for c in complaints if c), None)
            if first:
                void[variant] = first
    return void


def _complaint(case, run, others):
    try:
        return case.check(run, others)
    except (KeyError, IndexError, TypeError) as error:  # TypeError: null, a NaN
        return f"it printed no usable result ({error!r})"


def evaluate(case, runs, failures):
    """The results of a case, one per measure."""
    void = _void(case, runs, failures)
    results = []
    for measure in case.measures:
        result = Result(
            f"{case.suite}.{case.name}", f"{case.suite}.{measure.name}", measure.unit, measure.bytes, void=void
        )
        medians = {}
        for variant, mine in runs.items():
            result.commands[variant] = case.variants[variant]
            if variant in void or not mine:
                continue
            taken = [measure.samples(run) for run in mine]
            if not all(taken):
                continue  # this variant has no such number
            result.runs[variant] = taken
            medians[variant] = [statistics.median(samples) for samples in result.runs[variant]]
            result.spreads[variant] = Spread.of(medians[variant])
            result.versions[variant] = _versions(mine[0])
            result.ranks[variant] = _ranks(mine[0])
        for ours, peer, target in measure.pairs:
            if ours in medians and peer in medians:
                # Both numbers of a ratio come from the same repetition: they shared its weather.
                spread = Spread.of([a / b for a, b in zip(medians[ours], medians[peer])])
                # The library as it is used bears no name: its way of doing something else does.
                mine = result.label if ours == "argosy" else f"{result.label}.{ours}"
                result.ratios.append(Ratio(f"{mine}.{peer}", ours, spread, target))
        for ours, floor, peer, its_floor, target in measure.excess:
            if all(variant in medians for variant in (ours, floor, peer, its_floor)):
                added = zip(medians[ours], medians[floor], medians[peer], medians[its_floor])
                spread = Spread.of([(a - b) / (c - d) for a, b, c, d in added])
                result.ratios.append(Ratio(f"{result.label}.added.{peer}", ours, spread, target))
        for variant, sense, limit in measure.limits:
            if variant in result.spreads:
                name = result.label if variant == "argosy" else f"{result.label}.{variant}"
                result.limits.append(Limit(name, result.spreads[variant], measure.unit, sense, limit))
        results.append(result)
    return results


def _size(number):
    for unit, step in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if number >= step and number % step == 0:
            return f"{number // step}{unit}"
    return str(number)


def _rows(results):
    """Table of medians; collectives have the columns of nccl-tests."""
    collective = any(r.bytes for r in results)
    if collective:
        rows = [["size", "ranks", "type", "op", "variant", "time us", "[min max]", "algbw GB/s", "busbw GB/s", "#wrong"]]
    else:
        rows = [["measure", "variant", "median", "[min max]", "unit"]]
    for result in results:
        for variant, s in result.spreads.items():
            spread = f"[{s.low:.1f} {s.high:.1f}]"
            if collective:
                algbw = result.bytes / s.median / 1e3
                ranks = result.ranks[variant]
                busbw = algbw * 2 * (ranks - 1) / ranks
                rows.append([_size(result.bytes), str(ranks), "float", "sum", variant, f"{s.median:.1f}", spread])
                rows[-1] += [f"{algbw:.3f}", f"{busbw:.3f}", "0"]
            else:
                rows.append([result.label, variant, f"{s.median:.2f}", spread, result.unit])
    return rows


def _text_table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in rows)


def _markdown_table(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])


def _first_line(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[0]
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine():
    cpu, memory = platform.machine(), "unknown"
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("MemTotal"):
            memory = f"{int(line.split()[1]) // 1024} MiB"
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "memory": memory,
        "kernel": platform.release(),
        "system": system,
        "compiler": _first_line(["c++", "--version"]),
    }


def load_at_start():
    """What ran here before the benchmarks did; warns when it was more than nothing."""
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"note: something else runs here (load {load:.1f}): figures will be worse and noisier")
    return round(load, 2)


def peer_versions(python):
    """Of the peers' packages; exits when there is no torch."""
    script = (
        "import importlib.metadata as m, json\n"
        "names = [n for n in ('torch', 'torchvision', 'paddlepaddle', 'numpy', 'nvidia-dali-cuda130') if list(m.distributions(name=n))]\n"
        "print(json.dumps({n: m.version(n) for n in names}))"
    )
    try:
        done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
        versions = json.loads(done.stdout)
    except (OSError, subprocess.CalledProcessError, json.JSONDecodeError) as error:
        sys.exit(f"compare.py: {python} does not run: {error}")
    if "torch" not in versions:
        sys.exit(f"compare.py: {python} has no torch. Install it there: {python} -m pip install torch")
    return versions


def _portable(command, args, root):
    """The command as text, without folders of this machine."""
    text = shlex.join("python3" if part == sys.executable else str(part) for part in command)
    if args.peers:
        text = text.replace(shlex.quote(args.peers), "$PEERS")
    if getattr(args, "pictures", None):
        text = text.replace(str(args.pictures), "$PICTURES")
    for place in (str(root), str(root.resolve())):
        text = text.replace(place + "/", "")
    return text.replace(str(args.bin) + "/", "build/release/bin/" if args.bin.is_absolute() else f"{args.bin}/")


def _json(results, args, root):
    return {
        "date": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "revision": _first_line(["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]),
        "command": _portable(["python3", "benchmarks/compare.py", *sys.argv[1:]], args, root),
        "machine": machine() | {"load_at_start": args.load},
        "peers": args.peer_versions,
        "repeated_after_a_crash": args.repeated,
        "repetitions": args.reps,
        "engine": args.engine,
        "ranks": args.nproc,
        "only": args.only,
        "measures": [
            {
                "name": r.label,
                "unit": r.unit,
                "variants": {
                    v: {
                        "median": s.median,
                        "min": s.low,
                        "max": s.high,
                        "ranks": r.ranks[v],
                        "versions": r.versions[v],
                        "command": _portable(r.commands[v], args, root),
                        "samples": [[round(x, 4) for x in run] for run in r.runs[v]],
                    }
                    for v, s in r.spreads.items()
                },
                "ratios": [
                    {
                        "name": x.label,
                        "ours": x.ours,
                        "median": x.spread.median,
                        "min": x.spread.low,
                        "max": x.spread.high,
                        "target": x.target,
                    }
                    for x in r.ratios
                ],
                "limits": [
                    {"name": x.label, "median": x.spread.median, "sense": x.sense, "limit": x.limit, "kept": x.kept()}
                    for x in r.limits
                ],
                "void": r.void,
            }
            for r in results
        ],
    }


def publish(suite, results, args, root):
    """Prints a suite and writes its two files. True when something is void."""
    results = [result for case in results for result in case]
    rows = _rows(results)
    ratios = [line for r in results for line in [*r.ratios, *r.limits]]
    void = {f"{r.case}.{v}": why for r in results for v, why in r.void.items()}
    void_lines = [f"VOID {label}: {why.splitlines()[0]}" for label, why in void.items()]
    print(f"\n{_text_table(rows)}")
    for line in [ratio.line() for ratio in ratios] + void_lines:
        print(line)
    print()

    data = _json(results, args, root)
    args.out.mkdir(parents=True, exist_ok=True)
    stem = args.out / f"{time.strftime('%Y-%m-%d-%H%M')}-{suite}"
    text = re.sub(  # a run's samples on one line
        r"\[[-0-9.,e\s]+\]", lambda m: re.sub(r"\s+", " ", m.group()), json.dumps(data, indent=1)
    )
    stem.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
    versions = {v: r.versions[v] for r in results for v in r.spreads}
    lines = [f"# {suite}, {data['date']}", "", f"`{data['command']}` at {data['revision']}", ""]
    lines += [_markdown_table(rows), ""]
    lines += ["```", *[ratio.line() for ratio in ratios], *void_lines, "```", ""]
    lines += ["Machine: " + ", ".join(f"{k} {v}" for k, v in data["machine"].items()) + ".", ""]
    if data["peers"]:
        lines += ["Peers: " + ", ".join(f"{k} {v}" for k, v in data["peers"].items()) + ".", ""]
    if data["repeated_after_a_crash"]:
        lines += [f"Runs repeated after a crash: {data['repeated_after_a_crash']}", ""]
    for variant, of_variant in versions.items():
        if of_variant:
            lines.append(f"- {variant}: " + ", ".join(f"{k} {v}" for k, v in of_variant.items()))
    stem.with_suffix(".md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return bool(void)
