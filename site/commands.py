#!/usr/bin/env python3
"""Pages of the reference from the programs' own --help: a page for each command.

site/commands.py ARGOSY FOLDER     writes FOLDER/<command>.md and FOLDER/names.md
"""

import re
import subprocess
import sys
from pathlib import Path

# These share a table of options, which has a page of its own.
LAUNCHERS = ("launch", "torchrun", "torch-launch", "paddle-launch")
COLUMN = 30  # where the text of an option begins


def said(argosy, *words):
    run = subprocess.run([argosy, *words], capture_output=True, text=True, timeout=60)
    if run.returncode != 0 or not run.stdout:
        sys.exit(f"site/commands.py: {' '.join(words)} ended with {run.returncode}: {run.stderr}")
    return run.stdout


def escaped(text):
    return re.sub(r"([\\*_<>\[\]$|])", r"\\\1", text)


def sections(text):
    """[(heading, lines)]: the first has no heading."""
    found = [("", [])]
    for line in text.split("\n"):
        if re.fullmatch(r"[A-Z][^:]*:", line):
            found.append((line[:-1], []))
        elif re.match(r"(Usage|Example[^:]*):", line):
            found.append(("text", [line]))
        elif line and not line.startswith(" ") and found[-1][0] not in ("", "text"):
            found.append(("text", [line]))
        else:
            found[-1][1].append(line)
    return found


def rows(lines):
    """[(what, about)] of lines such as "  --epochs N      Passes over …", which may go on below."""
    found = []
    for line in filter(str.strip, lines):
        if line.startswith("  -") and line[COLUMN - 1 : COLUMN] == " ":
            found.append([line[:COLUMN].strip(), line[COLUMN:].strip()])
            continue
        row = re.fullmatch(r"  (\S.*?)(?:\s{2,}(\S.*))?", line)
        if row and not line.startswith(" " * 3):
            found.append([row[1], row[2] or ""])
        elif found and line.startswith(" " * 8):
            found[-1][1] = f"{found[-1][1]} {line.strip()}".strip()
        elif found:
            sys.exit(f"site/commands.py: cannot read the line {line!r} of a help text")
    return found


def body(text, level):
    parts = []
    for heading, lines in sections(text):
        words = re.sub(r"\s+", " ", " ".join(lines)).strip()
        if heading in ("", "text"):
            if words.startswith("Usage:"):
                parts.append(f"    {words.removeprefix('Usage:').strip()}")
            elif words.startswith("Example:"):
                parts.append(f"Example:\n\n    {words.removeprefix('Example:').strip()}")
            elif words:
                about, _, example = words.partition(" Example: ")
                parts.append(escaped(about) + (f"\n\nExample:\n\n    {example}" if example else ""))
        elif heading.startswith("Example"):
            parts.append(f"{heading}:\n\n" + "\n".join("    " + line.strip() for line in lines if line.strip()))
        else:
            listed = [f"- `{what}`: {escaped(about)}" if about else f"- `{what}`" for what, about in rows(lines)]
            parts.append(f"{'#' * level} {heading}\n\n" + "\n".join(listed))
    return "\n\n".join(parts)


def commands_in(text):
    return [what.split(",")[0] for heading, lines in sections(text) if heading == "Commands" for what, _ in rows(lines)]


def main():
    argosy, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    overview = said(argosy, "--help")
    if "Not installed here" in overview:
        sys.exit(f"site/commands.py: expected all programs beside {argosy}, which says that some are not installed")
    commands = commands_in(overview)
    listed = dict(rows(next(lines for heading, lines in sections(overview) if heading == "Commands")))
    index = "\n".join(f"- [argosy {command}]({command}.md): {escaped(listed[command])}" for command in commands)
    order = "\n".join([*commands, "names"])
    (folder / "index.md").write_text(
        "# Commands\n\nEvery option, as the programs' `--help` says it.\n\n"
        f"{index}\n- [Names that argosy train knows](names.md): models, data sets, transforms, optimizers and more\n\n"
        f"```{{toctree}}\n:hidden:\n\n{order}\n```\n",
        encoding="utf-8",
    )
    count = 0
    for command in commands:
        text = said(argosy, command, "--help")
        inner = commands_in(text)
        if command in LAUNCHERS:
            about = " ".join(line.strip() for line in sections(text)[0][1]).strip()
            shown = (
                f"{escaped(about)}\n\n    argosy {command} [options] [--] program [arguments]\n\n"
                "[Options of argosy launch](../launch_options.md) lists every option, with the launchers that know it."
            )
        else:
            shown = body(text, 2)
        page = [f"# argosy {command}", shown]
        page += [f"## argosy {command} {name}\n\n" + body(said(argosy, command, name, "--help"), 3) for name in inner]
        (folder / f"{command}.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")
        count += 1 + len(inner)
    listed = said(argosy, "train", "--list", "all").strip()
    groups = re.split(r"\n\n(?=[a-z]+\n\n)", "\n\n" + listed)
    page = ["# Names that argosy train knows", "`argosy train --list all` prints this page."]
    for group in filter(str.strip, groups):
        name, _, rest = group.strip().partition("\n\n")
        page.append(f"## {name}\n\n```text\n{rest.rstrip()}\n```")
    (folder / "names.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")
    print(f"commands: {count} help texts")


if __name__ == "__main__":
    main()
