#!/usr/bin/env python3
"""Writes a C++ unit that uses every class, struct and enumeration of installed headers, for its debugging information.

    packaging/abi_surface.py INCLUDE >surface.cpp

INCLUDE has the folder argosy. What stands inside a class is reached through it; templates and what is named detail
or internal are left out.
"""

import re
import sys
from pathlib import Path

NAMESPACE = re.compile(r"^namespace ([\w:]+) \{$")
END = re.compile(r"^\}  // namespace ([\w:]+)")
TYPE = re.compile(r"^(?:class|struct|enum class) (?:(?:\[\[.*?\]\]|alignas\(.*?\)|ARGOSY_\w+) )*(\w+)(?: final)?(?: ?[:{]|$)")
HIDDEN = re.compile(r"\b(detail|internal)\b")


def types(text):
    """Names of the types that a header defines outside of classes, as clang-format lays them out."""
    inside, before = [], ""
    lines = text.splitlines()
    for place, line in enumerate(lines):
        if found := NAMESPACE.match(line):
            if lines[place + 2] != "}":  # that declares one name, and ends without a comment
                inside.append(found[1])
        elif END.match(line):
            inside.pop()
        elif (found := TYPE.match(line)) and not before.startswith("template"):
            name = "::".join([*inside, found[1]])
            if name.startswith("argosy") and not HIDDEN.search(name):
                yield name
        before = line or before


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    include = Path(sys.argv[1])
    headers = sorted(path.relative_to(include) for path in (include / "argosy").rglob("*.h"))
    names = sorted({name for header in headers for name in types((include / header).read_text())})
    if not names:
        sys.exit(f"argosy: there is no type in {include}/argosy")
    print("".join(f"#include <{header}>\n" for header in headers))
    print("\n".join(f"void argosy_abi({name}&) {{}}" for name in names))


if __name__ == "__main__":
    main()
