#!/usr/bin/env python3
"""Says of which of Debian's packages files are, as a CycloneDX document, and collects their licences. SOURCES.txt beside
those says where each source is had.

    packaging/sbom.py --files LIST --version 0.1.0 --commit 1a2b3c --licenses FOLDER --out sbom.json

LIST has the paths of the files, one a line.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path


COMMON = Path("/usr/share/common-licenses")  # which copyright files refer to, and other systems do not have
# GPL without an exception for what links it: such a library may not be in what users link their programs with.
REFUSED = {"libjbig0", "libreadline8"}
SOURCES = """What is in here and not Argosy's is Debian's, built from the source packages below. Each is had by
`apt-get source NAME=VERSION`, and old ones from Debian's snapshot archive. Of the shared libraries, the names of
libraries that they do not use were removed and $ORIGIN was set as their search path (patchelf); nothing else was
changed, and each can be replaced by another build of its own. The launcher is linked again by
packaging/static_launcher.sh of Argosy's source, commit {commit}.

"""


def owner(path):
    """(name, architecture) of the package; /usr/lib and /lib are one folder, and it may know the other name."""
    for known in (path, path.removeprefix("/usr")):
        found = subprocess.run(["dpkg", "-S", known], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split(": ")[0].split(",")[0].partition(":")[0]
    sys.exit(f"argosy: {path} is of no Debian package: it has no version, and no licence that is known")


def described(package):
    fields = "${Version}\n${Architecture}\n${source:Package}\n${source:Version}"
    words = subprocess.run(["dpkg-query", "-W", "-f", fields, package], check=True, capture_output=True, text=True)
    version, architecture, source, source_version = words.stdout.split("\n")[:4]
    component = {
        "type": "library",
        "name": package,
        "version": version,
        "purl": f"pkg:deb/debian/{package}@{version}?arch={architecture}&upstream={source}",
    }
    return component, f"{source}={source_version}"


def collect_licences(packages, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for package in packages:
        text = (Path("/usr/share/doc") / package / "copyright").read_text(errors="replace")
        (folder / package).write_text(text)
        for name in re.findall(r"/usr/share/common-licenses/([A-Za-z0-9.-]*[A-Za-z0-9])", text):
            if (COMMON / name).is_file():
                shutil.copyfile(COMMON / name, folder / name)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--licenses", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()

    packages = sorted({owner(line) for line in args.files.read_text().split()})
    if refused := REFUSED.intersection(packages):
        sys.exit(f"argosy: {', '.join(refused)}: GPL, which would hold for programs of users too")
    collect_licences(packages, args.licenses)
    components, sources = zip(*(described(package) for package in packages))
    listed = "".join(f"{source}\n" for source in sorted(set(sources)))
    (args.licenses / "SOURCES.txt").write_text(SOURCES.format(commit=args.commit) + listed)
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
        "components": list(components),
    }
    args.out.write_text(json.dumps(document, indent=1) + "\n")
    print(f"{len(packages)} packages")


if __name__ == "__main__":
    main()
