#!/usr/bin/env python3
"""The finished site: makes the search's list of sections, and follows every link.

    site/check_site.py SITE

Fails for a link whose file or anchor is not there, a page that no other page leads to, and anything that a browser
would fetch from a network.
"""

import json
import re
import sys
from collections import deque
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

UNSEARCHED = ("search.html", "genindex.html", "benchmarks/results/")
FETCHED = {"script": "src", "img": "src", "link": "href", "source": "src", "iframe": "src"}
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Page(HTMLParser):
    """Links, anchors, and the sections of the article."""

    def __init__(self):
        super().__init__()
        self.links, self.fetched, self.anchors, self.sections = [], [], set(), []
        self.depth, self.article, self.quiet = 0, None, []
        self.heading = None

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        if tag in FETCHED and attributes.get(FETCHED[tag]):
            self.fetched.append(attributes[FETCHED[tag]])
        if tag in VOID:
            return
        self.depth += 1
        kinds = (attributes.get("class") or "").split()
        if tag == "article":
            self.article = self.depth
            self.sections = [["", "", ""]]
        if tag in ("script", "style", "svg", "button") or "headerlink" in kinds or "toctree-wrapper" in kinds:
            self.quiet.append(self.depth)
        if self.article and tag == "section":
            self.sections.append([attributes.get("id") or "", "", ""])
        if self.article and re.fullmatch("h[1-6]", tag):
            self.heading = self.depth

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if self.quiet and self.quiet[-1] == self.depth:
            self.quiet.pop()
        if self.heading == self.depth:
            self.heading = None
        if self.article == self.depth:
            self.article = None
        self.depth -= 1
        if self.sections and self.article:
            self.sections[-1][2] += " " if tag in ("p", "li", "td", "th", "pre", "div") else ""

    def handle_data(self, data):
        if self.article and not self.quiet:
            self.sections[-1][1 if self.heading else 2] += data


def read(site):
    pages = {}
    for path in sorted(site.rglob("*.html")):
        page = Page()
        page.feed(path.read_text(encoding="utf-8"))
        pages[path.relative_to(site).as_posix()] = page
    return pages


def searched(pages):
    """[[page, its title, anchor, heading, text], …]"""
    found = []
    for name, page in pages.items():
        if name.startswith(UNSEARCHED):
            continue
        tidy = [[anchor, *(re.sub(r"\s+", " ", part).strip() for part in parts)] for anchor, *parts in page.sections]
        title = next((heading for _, heading, _ in tidy if heading), name)
        for i, (anchor, heading, text) in enumerate(tidy):
            if heading or text:
                found.append([name, title, "" if heading == title else anchor, heading or title, text])
    return found


def resolved(name, address):
    """The file and anchor that a link of a page leads to."""
    parts = urlsplit(address)
    target = name
    if parts.path:
        stack = name.split("/")[:-1]
        for step in unquote(parts.path).split("/"):
            if step == "..":
                if not stack:
                    return None, ""
                stack.pop()
            elif step not in ("", "."):
                stack.append(step)
        target = "/".join(stack)
    return target, unquote(parts.fragment)


def main():
    site = Path(sys.argv[1])
    pages = read(site)
    wrong, links, outside = [], 0, 0
    reached, waiting = {"index.html"}, deque(["index.html"])
    leads = {}
    for name, page in pages.items():
        leads[name] = set()
        for address in page.fetched:
            if re.match(r"(https?:)?//", address):
                wrong.append(f"{name} fetches {address} from a network")
            elif not address.startswith("data:") and not (site / (resolved(name, address)[0] or "?")).exists():
                wrong.append(f"{name} needs {address}, which is not there")
        for address in page.links:
            links += 1
            if re.match(r"[a-z]+:", address):
                outside += 1
                continue
            target, anchor = resolved(name, address)
            if target is None or not (site / target).is_file():
                wrong.append(f"{name} links to {address}, which is not there")
                continue
            leads[name].add(target)
            if anchor and target in pages and anchor not in pages[target].anchors:
                wrong.append(f"{name} links to {address}: {target} has no such place")
    while waiting:
        for target in leads.get(waiting.popleft(), ()):
            if target in pages and target not in reached:
                reached.add(target)
                waiting.append(target)
    wrong += [f"no page leads to {name}" for name in pages if name not in reached and name != "search.html"]
    for sheet in site.rglob("*.css"):
        far = re.findall(r"url\(['\"]?(https?://[^)'\"]+)", sheet.read_text(encoding="utf-8"))
        wrong += [f"{sheet.relative_to(site)} fetches {address}" for address in far]
    if wrong:
        sys.exit("\n".join(sorted(set(wrong))))
    sections = searched(pages)
    found = {name for name, *_ in sections}
    if unread := [name for name in pages if not name.startswith(UNSEARCHED) and name not in found]:
        sys.exit("the search finds no section of " + ", ".join(unread))
    script = f"const sections = {json.dumps(sections, ensure_ascii=False, separators=(',', ':'))};\n"
    (site / "_static/search_sections.js").write_text(script, encoding="utf-8")
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) / 1e6
    print(
        f"site: {len(pages)} pages, {size:.1f} MB; {links} links lead somewhere ({outside} out of the site, not "
        f"followed); {len(sections)} sections to search"
    )


if __name__ == "__main__":
    main()
