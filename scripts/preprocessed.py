#!/usr/bin/env python3
"""preprocessed.py DATABASE FILE: what clang reads of one unit, comments included."""
import json
import os
import shlex
import subprocess
import sys

database, wanted = sys.argv[1], os.path.realpath(sys.argv[2])
with open(os.path.join(database, "compile_commands.json")) as f:
    unit = next(u for u in json.load(f) if os.path.realpath(u["file"]) == wanted)
words = shlex.split(unit["command"])
out = words.index("-o")
flags = [w for w in words[1:out] + words[out + 2:] if w != "-c"]
sys.exit(subprocess.run(["clang++-14", "-w", "-E", "-P", "-CC", *flags], cwd=unit["directory"]).returncode)
