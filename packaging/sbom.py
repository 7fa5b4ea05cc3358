#!/usr/bin/env python3
"""Says of which of Debian's packages something is, as a CycloneDX document.

    packaging/sbom.py --files LIST --version 0.1.0 --commit 1a2b3c --licenses FOLDER --out sbom.json
    packaging/sbom.py --packages LIST --version 0.1.0 --commit 1a2b3c --out sbom.json

The first is about files, whose paths LIST has, one a line; it collects their packages' licences, and SOURCES.txt
beside those says where each source is had. The second is about packages, as `dpkg-query -W -f "$(packaging/sbom.py
--format)"` prints them, or dpkg-deb: what they have of archives of other packages (Static-Built-Using) is listed too.
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
FIELDS = ["Package", "Version", "Architecture", "source:Package", "source:Version", "Static-Built-Using"]
SOURCES = """What is in here and not Argosy's is Debian's, built from the source packages below. Each is had by
`apt-get source NAME=VERSION`, and old ones from Debian's snapshot archive. Of the shared libraries, the names of
libraries that they do not use were removed and $ORIGIN was set as their search path (patchelf), and in a package for
Python they and their names for the loader begin with libargosy_. Nothing else was changed, and each can be replaced by
another build of its own. A launcher without shared libraries is linked again by packaging/static_launcher.sh of
Argosy's source, commit {commit}.

"""


def owner(path):
    """(name, architecture) of the package; /usr/lib and /lib are one folder, and it may know the other name."""
    for known in (path, path.removeprefix("/usr")):
        found = subprocess.run(["dpkg", "-S", known], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split(": ")[0].split(",")[0].partition(":")[0]
    sys.exit(f"argosy: {path} is of no Debian package: it has no version, and no licence that is known")


def line_format():
    """What dpkg-query and dpkg-deb are to print of a package: a line of FIELDS, with tabs between."""
    return r"\t".join(f"${{{field}}}" for field in FIELDS) + r"\n"


def component(name, version, qualifiers):
    purl = f"pkg:deb/debian/{name}@{version.replace('+', '%2B')}?{qualifiers}"
    return {"type": "library", "name": name, "version": version, "purl": purl}


def described(package):
    command = ["dpkg-query", "-W", "-f", line_format(), package]
    words = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    name, version, architecture, source, source_version, _ = words.rstrip("\n").split("\t")
    return component(name, version, f"arch={architecture}&upstream={source}"), f"{source}={source_version}"


def collect_licences(packages, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for package in packages:
        text = (Path("/usr/share/doc") / package / "copyright").read_text(errors="replace")
        (folder / package).write_text(text)
        for name in re.findall(r"/usr/share/common-licenses/([A-Za-z0-9.-]*[A-Za-z0-9])", text):
            if (COMMON / name).is_file():
                shutil.copyfile(COMMON / name, folder / name)


def of_files(files, licenses, commit):
    packages = sorted({owner(line) for line in files.read_text().split()})
    if refused := REFUSED.intersection(packages):
        sys.exit(f"argosy: {', '.join(refused)}: GPL, which would hold for programs of users too")
    collect_licences(packages, licenses)
    components, sources = zip(*(described(package) for package in packages))
    listed = "".join(f"{source}\n" for source in sorted(set(sources)))
    (licenses / "SOURCES.txt").write_text(SOURCES.format(commit=commit) + listed)
    return list(components)


def of_packages(lines):
    """The packages, and after them the source packages that are built in, each once."""
    components, built_in = [], set()
    for line in sorted(lines.read_text().splitlines()):
        name, version, architecture, source, _, static = line.split("\t")
        components.append(component(name, version, f"arch={architecture}&upstream={source}"))
        built_in |= set(re.findall(r"(\S+) \(= (\S+)\)", static))
    return components + [component(*source, "arch=source") for source in sorted(built_in)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", action="store_true", help="print what --packages wants of dpkg-query, and end")
    of_what = parser.add_mutually_exclusive_group()
    of_what.add_argument("--files", type=Path)
    of_what.add_argument("--packages", type=Path)
    parser.add_argument("--version")
    parser.add_argument("--commit")
    parser.add_argument("--licenses", type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.format:
        print(line_format())
        return
    if None in (args.files or args.packages, args.version, args.commit, args.out) or bool(args.files) != bool(
        args.licenses
    ):
        parser.error("expected --version, --commit, --out, and --files with --licenses or --packages")

    components = of_files(args.files, args.licenses, args.commit) if args.files else of_packages(args.packages)
    if not components:
        sys.exit("argosy: there is no package to list")
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
        "components": components,
    }
    args.out.write_text(json.dumps(document, indent=1) + "\n")
    print(f"{len(components)} packages")


if __name__ == "__main__":
    main()
