"""Compares two runs of the same tests: counts of each, and every test of which they say different things.

    compare.py GLOO.json OTHER.json [--explained FILE]

A difference is a test that passed, failed or was skipped on one backend and not on the other. FILE explains them, one a
line: PATTERN: WHY. With it the comparison ends with 1 when a difference has no explanation, when an explanation
finds no difference, and when the second backend made no group at all.
"""

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path

OUTCOMES = ["passed", "failed", "skipped"]


def read(path):
    return json.loads(Path(path).read_text())


def counts(run):
    return Counter(entry["outcome"] for entry in run["tests"].values())


def outcome(run, name):
    return run["tests"].get(name, {"outcome": "absent", "reason": "", "groups": 0})


def differences(first, second):
    names = sorted(first["tests"] | second["tests"])
    return [name for name in names if outcome(first, name)["outcome"] != outcome(second, name)["outcome"]]


def groups(run):
    return sum(entry.get("groups", 0) for entry in run["tests"].values())


def explanations(path):
    """Patterns to reasons. A line that starts with # is a remark."""
    lines = [line for line in Path(path).read_text().splitlines() if line.strip() and not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


def table(runs):
    print("| backend | " + " | ".join(OUTCOMES) + " | seconds | groups of the backend under test |")
    print("|---|" + "---:|" * (len(OUTCOMES) + 2))
    for run in runs:
        cells = [str(counts(run)[one]) for one in OUTCOMES] + [str(run["seconds"]), str(groups(run))]
        print(f"| {run['backend']} | " + " | ".join(cells) + " |")


def by_file(runs):
    """Counts of each file, where there is more than one."""
    files = sorted({name.split("::")[0] for run in runs for name in run["tests"]})
    if len(files) < 2:
        return
    print("\n| file | " + " | ".join(f"{run['backend']} p/f/s" for run in runs) + " |")
    print("|---|" + "---:|" * len(runs))
    for file in files:
        print(f"| {file} | " + " | ".join(_counts_of(run, file) for run in runs) + " |")


def _counts_of(run, file):
    chosen = Counter(e["outcome"] for name, e in run["tests"].items() if name.split("::")[0] == file)
    return "/".join(str(chosen[one]) for one in OUTCOMES)


def show(first, second, names, explained):
    unexplained = []
    for name in names:
        was, now = outcome(first, name), outcome(second, name)
        why = next((why for pattern, why in explained.items() if re.search(pattern, name)), None)
        print(f"\n{name}: {was['outcome']} on {first['backend']}, {now['outcome']} on {second['backend']}")
        print("  " + (now["reason"] or was["reason"]).strip().replace("\n", "\n  "))
        if why is None:
            unexplained.append(name)
        else:
            print(f"  explained: {why}")
    return unexplained


def stale(explained, names):
    return [pattern for pattern in explained if not any(re.search(pattern, name) for name in names)]


def faults(first, second, names, unexplained, explained):
    yield from (f"no explanation for {name}" for name in unexplained)
    yield from (f"no difference is found by {pattern}" for pattern in stale(explained, names))
    if second["backend"] != first["backend"] and groups(second) == 0:
        yield f"no group was made by {second['backend']}"
    if not second["tests"]:
        yield "no test ran"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("--explained", help="a file of explanations; without it differences are only shown")
    options = parser.parse_args()
    first, second = read(options.first), read(options.second)
    table([first, second])
    by_file([first, second])
    names = differences(first, second)
    explained = explanations(options.explained) if options.explained else {}
    unexplained = show(first, second, names, explained)
    print(f"\n{len(names)} differences, {len(names) - len(unexplained)} of them explained")
    found = list(faults(first, second, names, unexplained, explained)) if options.explained else []
    for fault in found:
        print(fault, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
