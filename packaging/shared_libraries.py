#!/usr/bin/env python3
"""Copies the shared libraries that programs need beside them, without those of which they use nothing.

    packaging/shared_libraries.py PROGRAM... --into FOLDER --system FOLDER --sources FILE

Debian's libraries name many others that they take no symbol from: libtorch names OpenCV, ffmpeg and through them 240
more. Such a name is removed from the copies. The C and C++ libraries and their loader go into --system, all others into
--into; programs and copies keep their names. Where they lay goes to --sources, a path a line. Prints the number and the
size. Needs binutils and patchelf.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

# What a program that is linked on the user's system takes from there.
SYSTEM = re.compile(
    r"(ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libresolv|libutil|libanl|libmvec|libnss_\w+|libstdc\+\+|libgcc_s)\.so\.\d+"
)


def output(*command):
    english = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=english).stdout


@cache
def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-d", "-W", path))


@cache
def symbols(path, kind):
    """Names without versions. kind: --defined-only or --undefined-only."""
    lines = output("nm", "--dynamic", "--format=posix", kind, path).splitlines()
    return frozenset(line.split()[0].split("@")[0] for line in lines)


def found_by_loader(program):
    """Paths by name, as the loader finds them on this machine."""
    listed = output("ldd", program)
    if "not found" in listed:
        sys.exit(f"argosy: {program} does not find all of its libraries:\n{listed}")
    pairs = re.findall(r"^\s*(\S+) => (/\S+)", listed, re.M)
    loader = re.search(r"^\s*(/\S*ld-linux\S+)", listed, re.M)
    return {**{name: Path(path).resolve() for name, path in pairs}, Path(loader[1]).name: Path(loader[1]).resolve()}


@cache
def with_versions(path):
    """Those of which a version is asked for, which the loader looks for in any case."""
    return frozenset(re.findall(r"File: (\S+)", output("readelf", "-V", "-W", path)))


def used(path, known):
    """Of those that it names, the ones that it takes a symbol from."""
    wanted = symbols(path, "--undefined-only")
    return [
        name
        for name in needed(path)
        if name in with_versions(path) or wanted & symbols(known[name], "--defined-only")
    ]


def forget_others(copy, path, keep):
    others = [name for name in needed(path) if name not in keep]
    if others:
        arguments = [word for name in others for word in ("--remove-needed", name)]
        subprocess.run(["patchelf", *arguments, copy], check=True)


def undefined(paths):
    """Symbols that nobody among them has."""
    have = frozenset().union(*(symbols(path, "--defined-only") for path in paths))
    for path in paths:
        lines = output("nm", "--dynamic", "--format=posix", "--undefined-only", path).splitlines()
        names = {line.split()[0].split("@")[0] for line in lines if line.split()[1] == "U"}
        yield from ((path, name) for name in names - have)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="+", type=Path)
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--system", type=Path, required=True)
    parser.add_argument("--sources", type=Path, required=True)
    args = parser.parse_args()

    known, all_of_them = {}, 0
    for program in args.programs:
        known |= found_by_loader(program)
    kept, queue = {}, list(args.programs)
    while queue:
        path = queue.pop()
        keep = used(path, known)
        queue += [known[name] for name in keep if name not in kept]
        kept |= {name: known[name] for name in keep}
        if path in args.programs:
            forget_others(path, path, keep)
    for name, path in kept.items():
        copy = (args.system if SYSTEM.fullmatch(name) else args.into) / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        copy.chmod(0o755)
        if not SYSTEM.fullmatch(name):
            forget_others(copy, path, used(path, known))
            # For programs that the system's loader starts.
            subprocess.run(["patchelf", "--set-rpath", "$ORIGIN:$ORIGIN/..", copy], check=True)
    lost = sorted(undefined([*args.programs, *kept.values()]))
    if lost:
        sys.exit("argosy: no library that was kept has what is used:\n" + "\n".join(f"{p}: {s}" for p, s in lost))
    args.sources.write_text("".join(f"{path}\n" for path in sorted(kept.values())))
    size = sum(path.stat().st_size for path in kept.values())
    all_of_them = sum(path.stat().st_size for path in set(known.values()))
    print(f"{len(kept)} of {len(known)} shared libraries, {size / 1e6:.0f} of {all_of_them / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
