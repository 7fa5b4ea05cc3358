#!/usr/bin/env python3
"""Lays out the site's sources in a folder, for Sphinx: the pages of docs/ as they are, other pages of the repository
that they link to, the navigation, and what site/api.py and site/commands.py have written.

    site/stage.py FOLDER
"""

import posixpath
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = "benchmarks/results"
# Pages of the repository and where they stand on the site; docs/ is its root.
PAGES = {
    "README.md": "overview.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks/method.md",
}
CLUSTERS = ("packaging/kubernetes", "packaging/slurm")  # what a user copies: each file is a page
FOLDERS = {RESULTS: f"{RESULTS}.md", "examples": "examples/index.md"} | {c: f"{c}/index.md" for c in CLUSTERS}


def place_of(path):
    """Where a file of the repository is on the site; None: nowhere."""
    if path in PAGES:
        return PAGES[path]
    if path in FOLDERS:
        return FOLDERS[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if re.fullmatch(rf"{RESULTS}/[^/]+\.(md|html)", path):
        return path
    if path.startswith(CLUSTERS):
        return f"{path}.md"
    if re.fullmatch(r"examples/\w+\.(cpp|h)", path):
        return re.sub(r"\.(cpp|h)$", ".md", path)
    return None


def with_links(text, path):
    """The page at `path` of the repository, with its links as they are on the site."""
    here = posixpath.dirname(place_of(path))

    def replaced(match):
        words, target, anchor = match[1], match[2], match[3] or ""
        found = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)).rstrip("/")
        place = place_of(found)
        if place is None or not (ROOT / found).exists():
            sys.exit(f"{path} links to {target}, which is not on the site: site/stage.py says what is")
        address = posixpath.relpath(place, here or ".")
        if address.endswith(".html"):  # a page that is not Sphinx's
            return f'<a href="{address}">{words.replace("`", "")}</a>'
        return f"[{words}]({address}{anchor})"

    # Code stays as it is: fences, and lines that are indented as code. A link's words may go over a line's end.
    parts = re.split(r"(^ *```.*?^ *```$|^ {4}[^\n]*$)", text, flags=re.S | re.M)
    local = r"(?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?"
    link = re.compile(rf"\[([^\[\]]*)\]\({local}\)")
    return "".join(part if i % 2 else link.sub(replaced, part) for i, part in enumerate(parts))


def navigation(folder):
    """The toctrees of the start page from site/navigation.txt: captions begin with "# ", globs are sorted."""
    parts, entries = [], []
    for line in (ROOT / "site/navigation.txt").read_text(encoding="utf-8").split("\n") + ["# "]:
        if line.startswith("# "):
            if entries:
                parts.append("```{toctree}\n:hidden:\n:caption: " + caption + "\n\n" + "\n".join(entries) + "\n```")
            caption, entries = line[2:], []
        elif "*" in line:
            found = sorted(p.relative_to(folder).with_suffix("").as_posix() for p in folder.glob(f"{line.strip()}.md"))
            entries += [name for name in found if name not in entries]
        elif line.strip():
            entries.append(line.strip())
    return "\n\n".join(parts)


def source_page(page, name, text, language):
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(f"---\norphan: true\n---\n\n# {name}\n\n```{language}\n{text.rstrip()}\n```\n", encoding="utf-8")


def cluster_pages(folder):
    for place in CLUSTERS:
        rows = []
        for source in sorted((ROOT / place).iterdir()):
            text = source.read_text(encoding="utf-8")
            language = {".yaml": "yaml", ".sh": "bash"}[source.suffix]
            source_page(folder / f"{place}/{source.name}.md", source.name, text, language)
            about = " ".join(line[2:] for line in text.splitlines() if line.startswith("# "))
            rows.append(f"- [{source.name}]({source.name}.md): {re.split(r'(?<=[.:]) ', about)[0]}")
        (folder / f"{place}/index.md").write_text(
            f"---\norphan: true\n---\n\n# {place}\n\n" + "\n".join(rows) + "\n", encoding="utf-8"
        )


def example_pages(folder):
    rows, inner = [], []
    for source in sorted((ROOT / "examples").glob("*.cpp")) + [ROOT / "examples/lesson.h"]:
        text = source.read_text(encoding="utf-8")
        source_page(folder / f"examples/{source.stem}.md", source.name, text, "cpp")
        about = re.match(r"(?:#pragma once\s*)?((?://[^\n]*\n)+)", text)
        about = re.sub(r"\n?// ?", " ", about[1]).strip() if about else ""
        rows.append(f"- [{source.name}]({source.stem}.md): {re.split(r'(?<=[.:])', about)[0].rstrip(':')}")
    (folder / "examples/index.md").write_text(
        "# Examples\n\nThe programs of `examples/`, which the tests build and run.\n\n" + "\n".join(rows) + "\n",
        encoding="utf-8",
    )


def result_pages(folder):
    """Each result is a page, which search leaves out: tables of numbers would bury everything else."""
    rows = []
    (folder / RESULTS).mkdir(parents=True, exist_ok=True)
    for source in sorted((ROOT / RESULTS).glob("*.md"), reverse=True):
        text = with_links(source.read_text(encoding="utf-8"), f"{RESULTS}/{source.name}")
        (folder / RESULTS / source.name).write_text(f"---\norphan: true\n---\n\n{text}", encoding="utf-8")
        rows.append(f"- [{source.stem}](results/{source.name})")
    (folder / f"{RESULTS}.md").write_text(
        "# All results\n\nEach page names the command, the machine and the versions. The repository has every sample "
        "beside it, as JSON.\n\n" + "\n".join(rows) + "\n",
        encoding="utf-8",
    )


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted((ROOT / "docs").rglob("*")):
        target = folder / source.relative_to(ROOT / "docs")
        if source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif source.suffix == ".md":
            target.parent.mkdir(parents=True, exist_ok=True)
            path = source.relative_to(ROOT).as_posix()
            target.write_text(with_links(source.read_text(encoding="utf-8"), path), encoding="utf-8")
        else:
            shutil.copy(source, target)
    for page, place in PAGES.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        text = with_links((ROOT / page).read_text(encoding="utf-8"), page)
        (folder / place).write_text(text, encoding="utf-8")
    example_pages(folder)
    cluster_pages(folder)
    result_pages(folder)
    with (folder / "index.md").open("a", encoding="utf-8") as index:
        index.write("\n" + navigation(folder) + "\n")


if __name__ == "__main__":
    main()
