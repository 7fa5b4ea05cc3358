#!/usr/bin/env python3
"""units_of.py BUILD_DIR HEADER...: for each header one .cpp that includes it, by the last build's record.

The unit of the same name first, then one of its folder, so that a tool that reads headers through
units (clang-tidy) sees every header at little cost. A header that no unit includes is named on
standard error.
"""

import os
import subprocess
import sys


def includes(build):
    """{unit: the files it includes}, relative to the current folder."""
    deps = subprocess.run(["ninja", "-C", build, "-t", "deps"], text=True, stdout=subprocess.PIPE, check=True)
    units = {}
    for block in deps.stdout.split("\n\n"):
        files = [os.path.relpath(os.path.join(build, line.strip())) for line in block.splitlines()[1:]]
        if files and files[0].endswith(".cpp"):
            units[files[0]] = files[1:]
    return units


def cost(unit, stem, files):
    """Sorts units: the header's own, then its folder's, then those with the fewest includes."""
    folder = os.path.dirname(stem)
    return unit != stem + ".cpp", unit != stem + "_test.cpp", os.path.dirname(unit) != folder, len(files)


def main():
    build, headers = sys.argv[1], sys.argv[2:]
    units = includes(build)
    if not units:
        sys.exit(f"lint: who includes {headers[0]} is known once {build} is built: make build")
    for header in headers:
        stem = os.path.splitext(header)[0]
        candidates = [unit for unit, files in units.items() if header in files and not unit.startswith("..")]
        if not candidates:
            print(f"lint: no unit includes {header}", file=sys.stderr)
            continue
        print(min(candidates, key=lambda unit: cost(unit, stem, units[unit])))


if __name__ == "__main__":
    main()
