#!/usr/bin/env python3
"""What stands as code in the pages is tried, each kind in its way.

    check_blocks.py ROOT ARGOSY [PAGE…]     without pages: README.md, CONTRIBUTING.md, SECURITY.md and docs/

- cpp: compiled by tests/docs/CMakeLists.txt (guides, reference, README), or quoted word by word from a file of
  examples/ that its page names (tutorial), which is compiled and run.
- bash, console, blocks that are indented by four, and `argosy …` within a line: every command has options that the
  program's own --help knows; whole scripts pass `bash -n`.
- cmake: built by the test install.consumer (README).
- python, json, yaml: parsed (yaml where Python has a parser).
- text: output, and drawings. Nothing else is a fence.
"""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

try:
    import yaml  # Debian's python3-yaml
except ImportError:
    yaml = None

LAUNCHERS = ("launch", "torchrun", "torch-launch", "paddle-launch", "fleetrun")
COMPILED = ("README.md", "docs/guides/", "docs/reference/")


class Blocks:
    """[(page, line, language, text)]; language "indented" is a block indented by four."""

    def __init__(self, root, page):
        self.found = []
        text = (root / page).read_text(encoding="utf-8")
        lines = text.split("\n")
        number, fence = 0, None
        while number < len(lines):
            line = lines[number]
            opened = re.match(r"^( *)```(.*)$", line)
            if opened:
                end = next((n for n in range(number + 1, len(lines)) if lines[n].strip() == "```"), len(lines))
                body = [row[len(opened[1]) :] for row in lines[number + 1 : end]]
                self.found.append((page, number + 1, opened[2].strip(), "\n".join(body)))
                number = end
            elif line.startswith("    ") and (number == 0 or not lines[number - 1].strip()):
                end = number
                while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                    end += 1
                self.found.append((page, number + 1, "indented", "\n".join(row[4:] for row in lines[number:end])))
                number = end - 1
            else:
                self.found += [(page, number + 1, "indented", span) for span in re.findall(r"`(argosy [^`]+)`", line)]
            number += 1


def commands(text):
    """The words of each simple command, without comments and redirections."""
    joined = re.sub(r"\\\n\s*", " ", text)
    for line in joined.split("\n"):
        try:
            lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()")
            lexer.whitespace_split = True
            words = list(lexer)
        except ValueError:  # a line of output, or of a text over several lines
            words = line.split()
        command = []
        for word in words + [";"]:
            if re.fullmatch(r"[|&;()]+", word):
                if command:
                    yield command
                command = []
            else:
                command.append(word)


class Program:
    """What `argosy` and its commands say of their options."""

    def __init__(self, argosy):
        self.argosy, self.known = argosy, {}

    def help(self, *words):
        if words not in self.known:
            run = subprocess.run([self.argosy, *words, "--help"], capture_output=True, text=True, timeout=60)
            self.known[words] = run.stdout if run.returncode == 0 else None
        return self.known[words]

    def options(self, *words):
        """{option: whether a value follows}"""
        text = self.help(*words) or ""
        if words[0] in LAUNCHERS:
            text += subprocess.run([self.argosy, "launch", "--help_reference"], capture_output=True, text=True).stdout
        found = {}
        for row in re.finditer(r"^ +(?:- )?`?(-{1,2}[\w-]+(?:`?, `?-{1,2}[\w-]+)*)`? ?([^\s(]*)", text, re.M):
            takes = bool(re.match(r"[A-Z<\"'a-z]", row[2]))
            for name in re.findall(r"-{1,2}[\w-]+", row[1]):
                found.setdefault(plain(name), takes)
        for name in re.findall(r"--[a-z][\w-]*", text):  # several in a row of the reference
            found.setdefault(plain(name), True)
        return found

    def problem(self, words):
        """What is wrong with a command that begins with `argosy`; None: nothing."""
        if len(words) < 2 or not re.fullmatch(r"[a-z][a-z-]*", words[1]):  # a path that ends so is an argument
            return None
        command = [words[1]]
        rest = words[2:]
        text = self.help(*command)
        if text is None:
            return f"there is no command {words[1]}"
        if re.search(r"^Commands:", text, re.M) and rest and not rest[0].startswith("-"):
            if rest[0] in ("<command>", "…"):
                return None
            command.append(rest.pop(0))
            if self.help(*command) is None:
                return f"there is no command {' '.join(command)}"
        known = self.options(*command)
        while rest:
            word = rest.pop(0)
            if word == "--":
                break
            if not word.startswith("-") or not re.match(r"--?[A-Za-z]", word):
                if command[0] in LAUNCHERS:
                    rest.insert(0, word)
                    break
                continue
            name = plain(word.partition("=")[0])
            if name not in known:
                return f"argosy {' '.join(command)} has no option {word}"
            if known[name] and "=" not in word and rest:
                rest.pop(0)
        if command[0] in LAUNCHERS:
            return self.problem_within(rest)
        return None

    def problem_within(self, words):
        """The first `argosy` of a command, which srun or a launcher may start."""
        for place, word in enumerate(words):
            if word == "argosy" or word.endswith("/argosy"):
                return self.problem(words[place:])
        return None


def plain(option):
    return option.replace("-", "_")


def squeezed(text):
    return [re.sub(r"\s+", " ", line.strip()) for line in text.strip().split("\n") if line.strip()]


def quoted(root, page, text):
    """True if the block stands in a file of examples/ that its page links to, line by line."""
    wanted = squeezed(text)
    for name in re.findall(r"\]\((?:\.\./)*(examples/\w+\.cpp)\)", (root / page).read_text(encoding="utf-8")):
        lines = squeezed((root / name).read_text(encoding="utf-8"))
        if any(lines[at : at + len(wanted)] == wanted for at in range(len(lines))):
            return True
    return False


def script_problem(text):
    run = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)
    return None if run.returncode == 0 else f"bash -n: {run.stderr.strip()}"


def problem_of(root, program, page, language, text):
    if language == "cpp":
        if page.startswith(COMPILED) or quoted(root, page, text):
            return None
        return "this C++ is neither compiled nor quoted from a file of examples/ that the page links to"
    if language in ("indented", "bash", "console"):
        if language == "bash" and script_problem(text):
            return script_problem(text)
        return "; ".join(p for words in commands(text) if (p := program.problem_within(words))) or None
    try:
        if language == "json":
            json.loads(text)
        elif language == "yaml":
            if yaml:
                list(yaml.safe_load_all(text))
        elif language == "python":
            compile(text, page, "exec")
        elif language == "cmake":
            return None if page == "README.md" else "only README's CMake is built by a test"
        elif language != "text":
            return f'expected cpp, bash, console, cmake, python, json, yaml, or text for output, got "{language}"'
    except (ValueError, SyntaxError) + ((yaml.YAMLError,) if yaml else ()) as error:
        return f"this is no {language}: {error}"
    return None


def main():
    root, program, pages = Path(sys.argv[1]), Program(sys.argv[2]), sys.argv[3:]
    if not pages:
        pages = ["README.md", "CONTRIBUTING.md", "SECURITY.md"]
        pages += sorted(p.relative_to(root).as_posix() for p in (root / "docs").rglob("*.md"))
    wrong, counts = [], {}
    for page in pages:
        for where, line, language, text in Blocks(root, page).found:
            counts[language] = counts.get(language, 0) + 1
            problem = problem_of(root, program, where, language, text)
            if problem:
                wrong.append(f"{where}:{line}: {problem}")
    print(", ".join(f"{number} {language}" for language, number in sorted(counts.items())))
    if wrong:
        sys.exit("\n".join(wrong))
    if len(counts) < 3:
        sys.exit("found hardly any blocks")


if __name__ == "__main__":
    main()
