#!/usr/bin/env python3
"""Pages of the reference from doxygen's XML: a page for each room, with what its public headers declare.

    site/api.py --headers              the headers that count as public, one a line
    site/api.py XML FOLDER             writes FOLDER/<room>.md

Public is what argosy/argosy.h includes and what the headers that only gather others (argosy/data/data.h …) include,
and the types that these show (ALSO). Everything in a namespace `detail` is left out.
"""

import re
import sys
import textwrap
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALSO = """base/error.h base/deadline.h data/loader_options.h data/loader_stats.h data/batch_scope.h datasets/row.h
datasets/source.h engine/load_result.h optim/sharded_step.h text/models/gpt_options.h train/callback.h train/logs.h
train/options.h train/callbacks/monitor.h vision/datasets/picture_dataset.h vision/transforms/any_transform.h""".split()
WIDTH = 88


def public_headers():
    found = [f"argosy/{header}" for header in ALSO]

    def take(header):
        if header not in found:
            found.append(header)
        text = (ROOT / header).read_text(encoding="utf-8")
        path = Path(header)
        if path.stem in ("argosy", path.parent.name):
            for more in re.findall(r'^#include "(argosy/[^"]+)"', text, re.M):
                if more not in found:
                    take(more)

    take("argosy/argosy.h")
    return sorted(header for header in found if header != "argosy/argosy.h")


def escaped(text):
    return re.sub(r"([\\`*_<>\[\]$|#])", r"\\\1", text)


def inline(node):
    """The text of a paragraph as Markdown."""
    parts = [escaped(node.text or "")]
    for child in node:
        if child.tag == "computeroutput":
            parts.append(f"`{''.join(child.itertext())}`")
        elif child.tag == "bold":
            parts.append(f"**{''.join(child.itertext()).strip()}**")
        elif child.tag == "emphasis":
            parts.append(f"*{''.join(child.itertext()).strip()}*")
        elif child.tag == "ulink":
            parts.append(f"[{inline(child)}]({child.get('url')})")
        elif child.tag in ("ndash", "mdash", "nonbreakablespace"):
            parts.append({"ndash": "–", "mdash": "—"}.get(child.tag, " "))
        elif child.tag == "linebreak":
            parts.append("\n")
        elif child.tag == "zwj":
            pass  # doxygen's, where a comment has "/*"
        elif child.tag in ("ref", "highlight", "sp", "superscript", "subscript"):
            parts.append(inline(child))
        elif child.tag not in BLOCKS:
            raise SystemExit(f"site/api.py: doxygen's <{child.tag}> is not known here: {ET.tostring(child)[:200]}")
        parts.append(escaped(child.tail or ""))
    return "".join(parts)


def code(text):
    return f"```cpp\n{textwrap.dedent(text.strip(chr(10))).rstrip()}\n```"


def plain(node):
    """The text of a piece of code; doxygen writes each space as an element."""
    inner = "".join(plain(part) for part in node)
    return (" " if node.tag == "sp" else "") + (node.text or "") + inner + (node.tail or "")


def listing(node):
    if node.tag in ("verbatim", "preformatted"):
        return code("".join(node.itertext()))
    lines = ["".join(plain(part) for part in row) for row in node.iter("codeline")]
    return code("\n".join(lines))


def items(node):
    mark = "1." if node.tag == "orderedlist" else "-"
    return "\n".join(
        textwrap.indent("\n\n".join(blocks(item)), " " * (len(mark) + 1)).replace(" " * (len(mark) + 1), mark + " ", 1)
        for item in node
    )


BLOCKS = {
    "verbatim": listing,
    "preformatted": listing,
    "programlisting": listing,
    "itemizedlist": items,
    "orderedlist": items,
    "simplesect": lambda node: "\n\n".join(blocks(node)),
}


def blocks(node):
    """Paragraphs, code and lists, in their order."""
    found = []
    for child in node:
        if child.tag == "para":
            words = ET.Element("para")
            words.text = child.text
            for part in child:
                if part.tag in BLOCKS:
                    found.append(inline(words).strip())
                    found.append(BLOCKS[part.tag](part))
                    words = ET.Element("para")
                    words.text = part.tail
                else:
                    words.append(part)
            found.append(inline(words).strip())
        elif child.tag in BLOCKS:
            found.append(BLOCKS[child.tag](child))
    return [block for block in found if block]


def described(node):
    """What is written about a thing: its comment, whole."""
    found = []
    for tag in ("briefdescription", "detaileddescription", "inbodydescription"):
        part = node.find(tag)
        if part is not None:
            found += blocks(part)
    return "\n\n".join(found)


def words(node):
    return "" if node is None else re.sub(r"\s+", " ", "".join(node.itertext())).strip()


def tidy(text):
    text = re.sub(r"\[\[[a-z]+\]\]\s*", "", text)
    text = re.sub(r"\s+([&*])", r"\1", text)
    return re.sub(r"< (.*?) >", r"<\1>", text.replace(" >", ">").replace("< ", "<"))


def parameter(node):
    """A parameter as it is declared, with its default."""
    name, value = words(node.find("declname")), words(node.find("defval"))
    shown = tidy(words(node.find("type"))) + (f" {name}" if name else "") + words(node.find("array"))
    return shown + (f" = {tidy(value)}" if value else "")


def template(node):
    parameters = node.find("templateparamlist")
    return "" if parameters is None else f"template <{', '.join(map(parameter, parameters))}>\n"


def arguments(node):
    return [parameter(p) for p in node.findall("param")]


def function(node):
    """A function as it is declared, on several lines where it is long."""
    kind = "static " if node.get("static") == "yes" and node.get("prot") and node.get("member") else ""
    kind += "explicit " if node.get("explicit") == "yes" else ""
    kind += "virtual " if node.get("virt") in ("virtual", "pure-virtual") else ""
    result = tidy(words(node.find("type")))
    head = kind + f"{result} {words(node.find('name'))}".strip()
    after = words(node.find("argsstring")).rpartition(")")[2]
    after = re.sub(r"\s*(override|final|noexcept)\b", r" \1", after)
    after = re.sub(r"\s*=\s*0", " = 0", after).replace("=delete", " = delete").replace("=default", "")
    one_line = f"{head}({', '.join(arguments(node))}){after.rstrip()};"
    if len(one_line) > WIDTH and arguments(node):
        one_line = f"{head}(\n    " + ",\n    ".join(arguments(node)) + f"){after.rstrip()};"
    return template(node) + one_line


def variable(node):
    value = tidy(words(node.find("initializer")))
    value = "" if value in ("{}", "= {}") else f" {value}" if value.startswith("=") else value
    constant = "static " if node.get("static") == "yes" else ""
    name = words(node.find("name")) + words(node.find("argsstring"))
    return f"{constant}{tidy(words(node.find('type')))} {name}{value};"


def alias(node):
    return template(node) + re.sub(r"\s+", " ", f"using {words(node.find('name'))} = {tidy(words(node.find('type')))};")


def enumeration(node):
    return f"enum {'class ' if node.get('strong') == 'yes' else ''}{words(node.find('name'))};"


DECLARED = {"function": function, "variable": variable, "typedef": alias, "enum": enumeration}


def line_of(node):
    location = node.find("location")
    return location.get("file"), int(location.get("line") or 0)


def worth_showing(member):
    if member.get("prot") == "private" or member.get("kind") not in DECLARED:
        return False
    name, after = words(member.find("name")), words(member.find("argsstring"))
    quiet = name.startswith(("~", "@")) or name == "operator=" or re.search(r"=\s*(default|delete)", after)
    return bool(described(member)) or not quiet


def member_text(member):
    """A member of a class: its declaration, and what is written about it below."""
    text = described(member)
    if member.get("kind") == "enum":
        text = "\n\n".join(filter(None, [text, values(member)]))
    return f":::{{container}} member\n{code(DECLARED[member.get('kind')](member))}\n\n{text}\n:::"


def values(node):
    rows = []
    for value in node.findall("enumvalue"):
        about = described(value).replace("\n\n", " ")
        rows.append(f"- `{words(value.find('name'))}`" + (f": {about}" if about else ""))
    return "\n".join(rows)


def fields(members):
    """Plain data of a struct as a list: one line each."""
    rows = []
    for member in members:
        about = textwrap.indent(described(member), "  ").strip()
        rows.append(f"- `{variable(member)[:-1]}`" + (f"\n  {about}" if about else ""))
    return "\n".join(rows)


class Entity:
    """What has a heading of its own: a class, a type, all functions of one name, or a whole header."""

    def __init__(self, name, place, kind):
        self.name, self.place, self.kind, self.nodes, self.said = name, place, kind, [], ""

    @property
    def header(self):
        return self.place[0]

    @property
    def is_plain(self):
        """Options explain themselves by their owner, and iterators by their loop."""
        return self.kind != "compound" or self.name.endswith(("Options", "::Iterator"))

    def takes(self, options):
        """True if a function here, or a constructor, has a parameter of this type."""
        return any(re.search(rf"\b{options}\b", words(t)) for n in self.nodes for t in n.findall(".//param/type"))

    @property
    def first_sentence(self):
        text = self.said or next((d for d in map(described, self.nodes) if d), "")
        text = text.split("\n\n")[0].replace("\n", " ")
        return re.split(r"(?<=[.])\s", text)[0].rstrip(":")

    def text(self):
        if self.kind == "header":
            return f"## {self.name}\n\n{self.said}"
        lines = [f"## {self.name}", f"`#include <{self.header}>`"]
        if self.kind == "compound":
            return "\n\n".join(lines + self.compound(self.nodes[0]))
        for node in self.nodes:
            lines += [code(DECLARED[node.get("kind")](node)), described(node)]
            if node.get("kind") == "enum":
                lines.append(values(node))
        return "\n\n".join(filter(None, lines))

    def compound(self, node):
        bases = [f"{b.get('prot')} {words(b)}" for b in node.findall("basecompoundref") if "detail" not in words(b)]
        name = words(node.find("compoundname")).removeprefix("argosy::")
        head = f"{template(node)}{node.get('kind')} {name}" + (f" : {tidy(', '.join(bases))}" if bases else "") + ";"
        lines = [code(head), described(node)]
        members = [m for s in node.findall("sectiondef") for m in s.findall("memberdef") if worth_showing(m)]
        members = [m for m in members if m.get("kind") != "friend" and m.get("prot") == "public"]
        for member in members:
            member.set("member", "yes")
        members.sort(key=line_of)
        group = []
        for member in members:
            if member.get("kind") == "variable":
                group.append(member)
                continue
            if group:
                lines.append(fields(group))
                group = []
            lines.append(member_text(member))
        if group:
            lines.append(fields(group))
        return [line for line in lines if line]


def read(folder, headers):
    """{room: its entities}, and {room: what its namespace says}."""
    rooms, about, conventions = defaultdict(dict), {}, {}
    for entry in ET.parse(folder / "index.xml").getroot():
        if entry.get("kind") not in ("class", "struct", "union", "namespace", "file"):
            continue
        node = ET.parse(folder / f"{entry.get('refid')}.xml").getroot().find("compounddef")
        full = words(node.find("compoundname"))
        if entry.get("kind") == "file":
            conventions[line_of(node)[0]] = described(node)
            continue
        if not full.startswith("argosy") or "detail" in full.split("::") or "<" in full or "@" in full:
            continue
        name = full.removeprefix("argosy").removeprefix("::")
        if entry.get("kind") == "namespace":
            room = name.split("::")[0]
            if described(node) and room == name:
                about[room] = described(node)
            members = [m for s in node.findall("sectiondef") for m in s.findall("memberdef")]
        elif node.get("prot") in ("private", "protected") or line_of(node)[0] not in headers:
            continue
        else:
            place = line_of(node)
            short = re.sub(r"^(?:[a-z_]+::)*", "", name)
            entity = rooms[place[0].split("/")[1]].setdefault((name, "compound"), Entity(short, place, "compound"))
            entity.nodes.append(node)
            continue
        for member in members:
            place = line_of(member)
            if place[0] not in headers or member.get("kind") not in DECLARED:
                continue
            if words(member.find("name")).startswith(("operator", "@", "ARGOSY_")):
                continue
            short = words(member.find("name"))
            inner = name.partition("::")[2]
            shown = f"{inner}::{short}" if inner else short
            key = (f"{name}::{short}", "function" if member.get("kind") == "function" else "type")
            entity = rooms[place[0].split("/")[1]].setdefault(key, Entity(shown, place, key[1]))
            entity.nodes.append(member)
    for header, text in conventions.items():
        if text and header in headers:
            entity = Entity(header, (header, 0), "header")
            entity.said = text
            rooms[header.split("/")[1]][(header, "header")] = entity
    return rooms, about


def declares(header):
    """Whether a header has more than includes, and specializations of templates, which have no place of their own."""
    begins = r"^(?:class|struct|enum|using|\[\[nodiscard\]\]|inline|void) (?!\w+<)"
    return re.search(begins, (ROOT / header).read_text(encoding="utf-8"), re.M)


def duties_of_rooms():
    """{room: what it is for}, as docs/design/architecture.md lists them."""
    text = (ROOT / "docs/design/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^- `(\w+)`(?: ◦)?: (.*?)\s+Rooms: ", re.sub(r"\n  ", " ", text), re.M)
    return {room: duty[0].upper() + duty[1:] for room, duty in rows}


def summary(entity, others):
    if entity.first_sentence:
        return f": {entity.first_sentence}"
    owner = next((o for o in others if o.name != entity.name and o.takes(entity.name)), None)
    return f": options of [{escaped(owner.name)}](#{slug(owner.name)})" if owner and entity.kind == "compound" else ""


def slug(name):
    return re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-")


def linked(text, known, here):
    """Names in a page's prose lead to where they are described."""
    lines, inside = [], False
    for line in text.split("\n"):
        if line.lstrip(" -").startswith("```"):
            inside = not inside
        if not inside and not line.startswith(("#", "`#include", ":::", "- [")):
            line = re.sub(
                r"(?<![\w`:./\[\\])((?:\w|\\_)+(?:::(?:\w|\\_)+)*)((?:\(\))?)(?![\w`:\]<(\\])",
                lambda m: link(m[1], m[2], known, here),
                line,
            )
        lines.append(line)
    return "\n".join(lines)


def link(written, call, known, here):
    name = written.replace("\\_", "_")
    if "::" not in name and not call and not re.search(r"[a-z0-9][A-Z]", name):
        return written + call
    for candidate in (name, name.rpartition("::")[0]):
        place = known.get(candidate)
        if place and place != here:
            return f"[{written}{call}]({place})"
    return written + call


def main():
    headers = public_headers()
    if sys.argv[1:] == ["--headers"]:
        print("\n".join(headers))
        return
    xml, target = Path(sys.argv[1]), Path(sys.argv[2])
    rooms, about = read(xml, headers)
    described = {entity.place[0] for entities in rooms.values() for entity in entities.values()}
    if unread := [header for header in headers if header not in described and declares(header)]:
        sys.exit("site/api.py: doxygen read nothing of " + ", ".join(unread))
    target.mkdir(parents=True, exist_ok=True)
    known, counts, duties = {}, defaultdict(int), duties_of_rooms()
    for room, entities in rooms.items():
        for (full, _), entity in entities.items():
            for name in {full, full.rpartition("::")[2] if entity.kind != "function" else full, entity.name}:
                counts[name] += 1
                known[name] = f"{room}.md#{slug(entity.name)}"
    known = {name: place for name, place in known.items() if counts[name] == 1}
    total, silent = 0, []
    for room, entities in sorted(rooms.items()):
        classes = {e.name for e in entities.values() if e.kind == "compound"}  # deduction guides are no functions
        shown = [e for e in entities.values() if e.kind == "compound" or e.name not in classes]
        shown.sort(key=lambda e: e.place)
        total += len(shown)
        silent += [f"{e.header}:{e.place[1]}: {e.name}" for e in shown if not e.first_sentence and not e.is_plain]
        names = defaultdict(int)
        for entity in shown:
            names[entity.name] += 1
        rows = [f"- [{escaped(e.name)}](#{slug(e.name)}){summary(e, shown)}" for e in shown if names[e.name] == 1]
        head = [f"# argosy::{room}", duties.get(room, ""), about.get(room, ""), "\n".join(rows)]
        page = "\n\n".join(filter(None, head + [e.text() for e in shown])) + "\n"
        (target / f"{room}.md").write_text(linked(page, known, None), encoding="utf-8")
    listed = "\n".join(f"- [argosy::{room}]({room}.md): {duties.get(room, '')}" for room in sorted(rooms))
    order = "\n".join(sorted(rooms))
    (target / "index.md").write_text(
        "# Classes and functions\n\nWhat the public headers declare, room by room. `#include <argosy/argosy.h>` brings "
        f"all of it that a training program uses.\n\n{listed}\n\n```{{toctree}}\n:hidden:\n\n{order}\n```\n",
        encoding="utf-8",
    )
    print(f"reference: {len(rooms)} rooms, {total} names from {len(headers)} headers")
    if silent:
        sys.exit("site/api.py: expected a /// comment before\n  " + "\n  ".join(silent))


if __name__ == "__main__":
    main()
