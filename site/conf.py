"""Sphinx: from the pages that site/stage.py has laid out to build/site."""

project = "Argosy"
author = "The Argosy authors"
copyright = "the Argosy authors. Apache License 2.0"  # noqa: A001 (Sphinx's name)
extensions = ["myst_parser", "sphinx_copybutton", "pages"]
source_suffix = {".md": "markdown"}
root_doc = "index"
html_theme = "furo"
html_title = "Argosy"
html_static_path = ["static"]
templates_path = ["templates"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_use_index = False
html_show_copyright = True
html_theme_options = {"navigation_with_keys": False}
highlight_language = "none"
smartquotes = False  # "--option" is no dash
pygments_style = "friendly"
pygments_dark_style = "monokai"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True
