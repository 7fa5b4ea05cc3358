#!/usr/bin/env python3
"""Says of which of Debian's packages files are, as a CycloneDX document, and collects their licences.

    packaging/sbom.py --files LIST --version 0.1.0 --commit 1a2b3c --licenses FOLDER --out sbom.json

LIST has the paths of the files, one a line.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path


def owner(path):
    """(name, architecture) of the package; /usr/lib and /lib are one folder, and it may know the other name."""
    for known in (path, path.removeprefix("/usr")):
        found = subprocess.run(["dpkg", "-S", known], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split(": ")[0].split(",")[0].partition(":")[0]
    sys.exit(f"argosy: {path} is of no Debian package: it has no version, and no licence that is known")


def described(package):
    fields = "${Version}\n${Architecture}\n${source:Package}"
    words = subprocess.run(["dpkg-query", "-W", "-f", fields, package], check=True, capture_output=True, text=True)
    version, architecture, source = words.stdout.split("\n")[:3]
    return {
        "type": "library",
        "name": package,
        "version": version,
        "purl": f"pkg:deb/debian/{package}@{version}?arch={architecture}&upstream={source}",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--licenses", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()

    packages = sorted({owner(line) for line in args.files.read_text().split()})
    args.licenses.mkdir(parents=True, exist_ok=True)
    for package in packages:
        shutil.copyfile(Path("/usr/share/doc") / package / "copyright", args.licenses / package)
    argosy = {
        "type": "application",
        "name": "argosy",
        "version": args.version,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
        "properties": [{"name": "commit", "value": args.commit}],
    }
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "metadata": {"component": argosy},
        "components": [described(package) for package in packages],
    }
    args.out.write_text(json.dumps(document, indent=1) + "\n")
    print(f"{len(packages)} packages")


if __name__ == "__main__":
    main()
