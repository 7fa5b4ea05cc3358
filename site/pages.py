"""What Sphinx must be told of these pages.

They mark places by <a id="…"></a>, which forges know and Sphinx does not: links lead there too. And code has "…" where
something is left out, which is no C++ and must not cost the colors of the rest.
"""

import re

from docutils import nodes
from pygments.lexers import CppLexer
from pygments.token import Error, Text


class CppWithGaps(CppLexer):
    def get_tokens_unprocessed(self, *args, **kwargs):
        for place, token, text in super().get_tokens_unprocessed(*args, **kwargs):
            yield place, Text if token is Error else token, text


def places(app, docname, source):
    app.env.argosy_places = getattr(app.env, "argosy_places", {})
    app.env.argosy_places[docname] = set(re.findall(r'<a id="([^"]+)">', source[0]))


def resolve(app, env, node, contnode):
    """A link to page.md#place, or to #place of its own page."""
    page, _, place = node["reftarget"].partition("#")
    document = node["refdoc"]
    if page:
        found = env.relfn2path(page, document)[0]
        document = re.sub(r"\.md$", "", found)
    if place not in env.argosy_places.get(document, ()):
        return None
    address = "" if document == node["refdoc"] else app.builder.get_relative_uri(node["refdoc"], document)
    return nodes.reference("", "", *contnode.children, internal=True, refuri=f"{address}#{place}")


def setup(app):
    app.connect("source-read", places)
    app.connect("missing-reference", resolve, priority=1)
    app.add_lexer("cpp", CppWithGaps)
    return {"parallel_read_safe": False}
