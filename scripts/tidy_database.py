#!/usr/bin/env python3
"""tidy_database.py BUILD_DIR: BUILD_DIR/tidy/compile_commands.json, which clang-tidy can read.

Without GCC's own flags and precompiled headers; with an entry for each header too, compiled by itself as
its unit is (else as one of its folder), so that a header which does not stand alone is found.
"""
import json
import os
import re
import subprocess
import sys

build = sys.argv[1]
GCC_ONLY = re.compile(r"-fpch-preprocess|-fno-devirtualize|-Winvalid-pch|-include \S*cmake_pch\.hxx|-Wno-(tsan|subobject-linkage|stringop-overread)"
                      r"|--param ggc-min-heapsize=\d+")


def readable(unit):
    command = GCC_ONLY.sub("", unit["command"])
    if "/torch/" in command or "torch/csrc" in command:  # libtorch 1.13 under clang in C++20
        command = command.replace(" -c ", " -includeATen/core/ivalue.h -c ")
    return {"directory": unit["directory"], "command": command, "file": unit["file"]}


def proxy(header, units):
    """The unit whose flags the header takes: its own, one that includes it, one of its folder."""
    stem, folder = os.path.splitext(header)[0], os.path.dirname(header)
    for unit in (stem + ".cpp", stem + "_test.cpp"):
        if unit in units:
            return unit
    here = [u for u in units if os.path.dirname(u) == folder]
    including = subprocess.run(["git", "grep", "-lE", f'^#include ["<]{header}[">]', "--", "*.cpp"],
                               text=True, stdout=subprocess.PIPE, check=False).stdout.split()
    including.sort(key=lambda u: (os.path.dirname(u) != folder, "_test" in u))
    return next((u for u in including + here if u in units), None)


with open(os.path.join(build, "compile_commands.json")) as f:
    units = {os.path.relpath(u["file"]): readable(u) for u in json.load(f)}
headers = subprocess.run(["scripts/sources.sh"], text=True, stdout=subprocess.PIPE, check=True).stdout.split()
database = list(units.values())
for header in (h for h in headers if h.endswith(".h")):
    if unit := proxy(header, units):
        file = os.path.abspath(header)
        command = units[unit]["command"].replace(f"-c {units[unit]['file']}", f"-x c++ -c {file}")
        database.append({**units[unit], "command": command, "file": file})
os.makedirs(os.path.join(build, "tidy"), exist_ok=True)
with open(os.path.join(build, "tidy", "compile_commands.json"), "w") as f:
    json.dump(database, f, indent=0)
